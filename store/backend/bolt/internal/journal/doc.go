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
// A log has a base, which is what is left of the state at its trimmed revision,
// and behind it the history without a hole. There is no second copy of the
// state: a reader of it reads the whole log once. Raising a log's floor gives up
// history; [Journal.Trim] then deletes, in small transactions, what nothing needs
// any more.
//
// [Open] gives the implementation, on bbolt; what a test needs of others is in
// package journaltest. Records are not interpreted here beyond what keeps a log
// whole.
//
// # Trust
//
// What is on the disk is not trusted. Before bbolt maps a file, its pages are
// walked and its records checked; every call of bbolt runs where a panic or a
// fault becomes a [*CorruptError]. A commit that fails for want of space changes
// nothing ([ErrFull]); one that fails otherwise leaves unknown what is on the
// disk, and nothing is written any more ([ErrFailed]).
package journal
