// Package disk has the rivals that keep objects on disk.
//
// Pebble is set up as its documentation recommends for durable writes: each writer commits
// its record with Sync, and Pebble's commit pipeline makes one sync of those that wait. Keys
// are numbers, as in watchmill's log and in that of the bare library.
package disk
