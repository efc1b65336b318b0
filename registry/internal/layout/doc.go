// Package layout knows where the value of an object keeps its metadata, its status and all
// else, and how it becomes JSON and is read from it. The rules of package registry are the
// same for a struct, whose fields Go knows, and for a map, whose fields only the JSON has.
//
//	JSON ──Decode──▶ *store.Object ──Encode──▶ JSON with a resourceVersion
//	                  │  ▲    ├──────Fields──▶ the same as a map
//	Clone or Draft,  ─┘  │    └────SameSpec──▶ has anything but metadata and status changed?
//	then TakeStatus ─────┘
//
// A layout has no state but its schema and is safe for concurrent use. Objects are shared:
// none of its methods but Decode and TakeStatus changes one.
package layout
