// Package bolt keeps versioned objects in one file: the backend for programs that
// restart. State, revisions, history, resume points and expiries survive crashes of the
// process and power cuts.
//
//	            encode, seal                 ┌── queue ──┐  one transaction, two syncs
//	Put ──▶ in the caller's goroutine ─────▶ │ ▪ ▪ ▪ ▪ ▪ │ ────────▶ FILE: a log of records
//	                                         └───────────┘                │ durable
//	                       ┌──────────────── memory ─────────────────┐    ▼
//	Get, List, Watch ◀──── │ Tree (newest state)  Window (hot history) │ ◀─ publish
//	                       └──────────────────────────────────────────┘
//	Watch or exact List of old revisions ◀──── read from the file, in runs
//
// A [File] holds objects of any number of types, each a [Backend] with revisions
// of its own, made by [New]. Reads of the state in memory do not use the file. A write
// becomes visible when it is durable, so a crash never takes back what a reader has
// seen.
//
// # Writing
//
// A writer that finds no commit in progress commits all waiting writes, in one
// transaction of up to 1,024 writes of all types. So a single writer has the latency of
// two syncs, and many writers share them. A write whose condition does not hold does
// not affect the others. There is no option to omit the syncs.
//
// # History
//
// A log keeps at least its newest 100,000 changes, and more by [Config.Retain]. A watch
// resumes from any of their revisions, also from before the file was opened; time
// during which the process does not run does not count for their age. Older changes are
// deleted in the background, in large chunks, which keeps an update at about one
// kilobyte written. For a minute after New, memory holds the oldest state as well as the
// newest, since an engine begins there.
//
// Objects with a TTL expire by the wall clock, also while the process does not run: when
// the file is opened they are deleted, with ordinary events.
//
// # Encoding
//
// Values are encoded by a [codec.Codec], JSON unless another is given, and
// encrypted by a [codec.Sealer] if one is given. Keys stay readable. Each record
// has the codec's tag, so that old ones stay readable when the codec changes;
// [Backend.Rewrite] encodes and encrypts all values again.
//
// # Errors
//
// The errors are package backend's:
//
//   - [backend.ErrFull]: there is no space, not even after discarding history that need
//     not be kept. Nothing was written, and everything else works.
//   - [backend.ErrFailed]: the disk failed during a commit. Nothing is written until the
//     file is opened again, which may or may not find the interrupted write
//     ([backend.ErrUncertain]). [Options].OnError is told, and [File.Failure] says so from then
//     on.
//   - [backend.ErrLocked]: another process has the file open, and did not close it
//     within [Options].LockTimeout.
//   - [backend.ErrCorrupt]: the file is damaged. It was not changed, and the error names
//     the page or record. Use [Check] and [Dump], then [Options].Salvage, or [Restore] a
//     snapshot. A file that does not begin as one of this package may also be another
//     program's, which the error says.
//
// # Caveats
//
// A disk that acknowledges writes which it has not made can lose acknowledged writes.
// Opening the file detects all damage of a single page with one exception: if the newer
// of the two meta pages is lost after it was synced, the file opens as of one
// transaction earlier, with a message in Info.Warnings.
//
// A new file is there after a power cut only if its file system can sync a directory, as
// those of local disks can. Others refuse it, such as some that are mounted over a network,
// and then its name is as durable as they make it.
//
// The file is locked by flock, which may not work between machines on NFS: use a local
// disk.
//
// A file that outgrows its memory mapping is mapped again. That waits for the reads in
// progress, also a snapshot, and all writes wait meanwhile. It happens at 64 GiB with 64
// bits, at 64 MiB with 32 bits, and whenever the file has doubled on Windows and in a
// process with less address space than that, as under ulimit -v.
//
// The file does not shrink; free space in it is reused. [Options].ShrinkAt copies it when
// it is opened, and [Shrink] while it is closed.
//
// With a full disk, reads and watches work and writes fail, also deletions, which take a
// little space. Writes succeed again when there is space; or lower Config.Retain and
// restart.
//
// A restored snapshot lacks the writes after it, so its revisions continue 2^32 above, on
// a new timeline: a consumer that resumes with an older revision gets the error that it
// is too old, and never sees a different history.
package bolt
