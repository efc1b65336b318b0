// Package journal keeps logs of records in one file: for each type of object
// the changes in the order of their revisions, each with a checksum.
//
//	Append(batch) ─▶ one transaction ─▶ data pages, fdatasync, meta page, fdatasync ─▶ nil: it lasts
//	                                       │
//	                 PATH ┌────────────────▼──────────────────────────────────┐
//	                      │ watchmill         file identity, bounds of logs  │
//	                      │ watchmill/pods    7 ▪ 12 ▪ ▪ 40│41 42 43 … 99     │
//	                      │ watchmill/nodes   base: state ─┘ └─ history: all  │
//	                      └────────────────┬──────────────────────────────────┘
//	Read ◀── one read transaction ─────────┘
//
// A log has a base, which is the rest of the state at its trimmed revision, and after it
// the complete history. There is no second copy of the state: to read it, the whole log
// is read once. Raising a log's floor discards history; [Journal.Trim] then deletes
// records that are not needed any more, in small transactions.
//
// [Open] returns the implementation, on bbolt; package journaltest has others for tests.
// This package interprets records only as far as the consistency of a log needs it.
//
// # Trust
//
// The contents of the disk are not trusted. Before bbolt maps a file, its pages and
// records are checked; every call of bbolt turns a panic or a memory fault into a
// [*CorruptError]. A commit that fails for lack of space changes nothing ([ErrFull]);
// after any other failure the contents of the disk are unknown, and nothing is written
// any more ([ErrFailed]).
package journal
