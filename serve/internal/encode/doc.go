// Package encode makes the bytes of objects in answers, once for all that read the same state of an object in the
// same form.
//
//	registry.Item ──▶ State ──▶ Cache ──┬──▶ ForEvent: an event of a watch
//	                  whole or partial   ├──▶ ForRead: an object
//	                  lean or not        ├──▶ List: a list, item by item
//	                                     └──▶ Table, EventTable: rows of cells, with as much of each object as is asked for
//
// Watches read the same event at the same time, so the bytes for an event are always kept. Those for reads are kept
// while the cache is less than half full, so that lists do not drive out what watches share.
//
// Lists and tables are put together from the bytes of their objects, which are not encoded again for them.
package encode
