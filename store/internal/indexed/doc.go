// Package indexed has what trees of objects and client-side caches are made of: a
// copy-on-write map in the order of its keys, with indexes, which does not know what
// its items are.
//
//	writer ──▶ Items    key → item             View, Fork: O(1), share all nodes;
//	      └──▶ Indexes  (value, key), sorted   a later write copies those on its path
//
// Package store/tree fills it with objects by their attributes, package store/cache with
// records of items by the user's index functions. Both write Items and Indexes themselves,
// since they find out in different ways which entries change.
package indexed
