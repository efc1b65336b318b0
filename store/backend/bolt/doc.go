// Package bolt keeps versioned objects in one file: the backend for programs that
// restart. State, revisions, history, resume points and times of expiry survive,
// whatever ends the process or the power.
//
//	            encode, seal                 ┌── queue ──┐  one transaction, two syncs
//	Put ──▶ in the caller's goroutine ─────▶ │ ▪ ▪ ▪ ▪ ▪ │ ────────▶ FILE: a log of records
//	                                         └───────────┘                │ durable
//	                       ┌──────────────── memory ─────────────────┐    ▼
//	Get, List, Watch ◀──── │ Tree (newest state)  Window (hot history) │ ◀─ publish
//	                       └──────────────────────────────────────────┘
//	Watch or exact List of long ago ◀──── read from the file, in runs
//
// A [File] holds objects of any number of types, each a [Backend] with revisions
// of its own, made by [New]. It is the memory backend's state machine with a log
// under it: reads touch no file, and a write shows nothing before it is durable. So
// no reader ever sees what a crash can take back.
//
// # Writing
//
// A writer that finds no commit in progress commits all waiting writes, in one transaction of up to
// 1,024 writes of all types. So one writer alone has the latency of two syncs, and
// 512 share them. A write that fails its condition fails alone. There is no option
// to go without syncs.
//
// # History
//
// A log keeps its newest 100,000 changes whatever their age, and more by
// [Config.Retain]. A watch resumes from any revision since, also from before the
// file was opened: the time while the process is down does not count. What is
// given up is deleted in the background, in large chunks, so that an update costs
// about a kilobyte of writing and not five.
//
// Objects with a TTL expire by the wall clock also while the process is down: what
// is due is deleted when the file is opened, by ordinary events.
//
// # Encoding
//
// Values are encoded by a [codec.Codec], JSON unless another is given, and
// encrypted by a [codec.Sealer] if one is given. Keys stay readable. Each record
// has the codec's tag, so that old ones stay readable when the codec changes;
// [Backend.Rewrite] encodes and seals all anew.
//
// # What can go wrong
//
// The errors are package backend's. [backend.ErrFull]: nothing was written and all
// goes on; history that need not be kept is given up first. [backend.ErrFailed]:
// the disk failed in the middle, so nothing is written any more until the file is
// opened again, and the write in hand may or may not be found then
// ([backend.ErrUncertain]). [backend.ErrLocked]: the file is open elsewhere, told
// after a second, not waited for. [backend.ErrCorrupt]: the file is damaged: it
// was not changed, the error names page or record, and [Check], [Dump],
// [Options].Salvage, or [Restore] of a snapshot are what to do next.
//
// # Caveats
//
// A disk that says it has written what it has not can lose what was acknowledged,
// and nothing here can prevent it. All damage of one page is found out when the
// file is opened but one: if the newest of the two meta pages is lost after it was
// synced, the file opens as it was one transaction earlier, and says so in
// Info.Warnings.
//
// The file is locked by flock. On NFS that may not hold between machines: use a
// local disk.
//
// A file that outgrows what it is mapped into is mapped again, and that waits for
// the reads in progress, a snapshot among them, as all writes do meanwhile. With 64
// bits a file has 64 GiB before that, with 32 bits 64 MiB; on Windows it is each
// time that the file doubles.
//
// The file does not become smaller by itself; space in it is used again.
// [Options].ShrinkAt copies it when it is opened.
//
// A full disk: reads and watches go on, writes fail. To delete objects takes a
// little space too. Free some, and writes go on by themselves; or lower
// Config.Retain and restart.
//
// A snapshot that is restored has lost what was written after it, so its revisions
// go on 2^32 above, on a timeline of its own: a consumer that resumes with a revision from
// before gets an error that it is too old, and never sees another history.
package bolt
