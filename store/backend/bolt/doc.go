// Package bolt keeps versioned objects in one file: the backend for programs that
// restart. State, revisions, history, resume points and expiries survive crashes of the
// process and power cuts.
//
//	            encode, seal                 ┌── queue ──┐  one transaction, two syncs
//	Put ──▶ in the caller's goroutine ─────▶ │ ▪ ▪ ▪ ▪ ▪ │ ────────▶ FILE: a log of records
//	                                         └───────────┘                │ durable
//	                       ┌───────────────── memory ──────────────────┐  ▼
//	Get, List, Watch ◀──── │ Tree (newest state)  Window (hot history) │ ◀─ publish
//	                       └───────────────────────────────────────────┘
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
// A file keeps at least the newest 100,000 changes of each type, unless [Config.Retain] says
// otherwise. A watch resumes from any of their revisions, even from before the file was
// opened. Time during which the process does not run does not count for their age.
//
// Older changes are deleted in the background, in large chunks, so that an update writes
// about one kilobyte. For a minute after New, memory holds the oldest state as well as the
// newest, since an engine begins there. The engine's lists and watches wait until it has read
// the history, which takes as long as decoding that many values: [Config.Retain] bounds it,
// engine.Config.FreshnessTimeout how long they wait, and Engine.WaitReady waits for the end.
//
// Objects with a TTL expire by the wall clock. Those that have expired while the process
// did not run are deleted when the file is opened, with ordinary events. If the wall clock is
// set ahead while it runs, objects that were read from the file expire within a minute of the
// time that the clock shows; those that were written since keep the time that they had left.
//
// # Encoding
//
// A [codec.Codec] encodes values, as JSON unless another is given. A [codec.Sealer]
// encrypts them, if one is given; keys stay readable. Each record has the codec's tag, so
// that old ones can be read when the codec changes. [Backend.Rewrite] encodes and encrypts
// all values again.
//
// # Errors
//
// The errors are package backend's:
//
//   - [backend.ErrFull]: there is no space, not even after discarding history that need
//     not be kept. Nothing was written, and reads and watches go on. Deletions fail, too,
//     since they take a little space. Writes succeed again when there is space; or lower
//     Config.Retain and restart. A file with [Options].MaxBytes that is full although [Info].Free
//     is a good part of it has that in pieces too small for its objects: [Shrink] joins them.
//   - [backend.ErrFailed]: the disk failed during a commit. Nothing is written, and no
//     snapshot made, until the file is opened again, which may or may not find the interrupted
//     write ([backend.ErrUncertain]). [Options].OnError gets the error, and [File.Failure]
//     returns it from then on. See "Failed syncs" below before the file is opened again.
//   - [backend.ErrLocked]: another process has the file open, and did not close it
//     within [Options].LockTimeout.
//   - [backend.ErrCorrupt]: the file is damaged. It was not changed, and the error names
//     the page or record. Use [Check] and [Dump], then [Options].Salvage, or [Restore] a
//     snapshot. A file that does not begin as one of this package may also be another
//     program's, which the error says.
//
// # Snapshots
//
// A restored snapshot lacks the writes after it. So its revisions continue 2^32 above, on a
// new timeline: a consumer that resumes with an older revision gets the error that it is
// too old, and never sees a different history. Two files restored from one snapshot are two
// storages, with different identities.
//
// # Caveats
//
//   - Systems: Linux, macOS and the BSDs. On others, such as Windows, Solaris and Android, files
//     are not locked by flock, and every function that uses one fails with an [*UnsupportedError].
//   - Processors: a file, and a snapshot of it, have the byte order of the processor that has
//     written them. One of the other order, as s390x is beside amd64 and arm64, refuses them with
//     the error that they are damaged, since they do not begin like a file or a snapshot.
//   - Disk: use a local one. One that acknowledges writes which it has not made can lose
//     acknowledged writes. The file is locked by flock, which may not work between machines
//     on NFS.
//   - Moving: close the file before it is moved, replaced or removed. Until then all is
//     written to the file that was opened, wherever that is, while another process can open
//     what the path names by then: the lock is that of the file. To copy an open file, use
//     [File.Snapshot].
//   - Damage: opening the file detects all damage of a single page, with two exceptions. If
//     the newer of the two meta pages is lost after it was synced, the file opens as of one
//     transaction earlier, with a message in Info.Warnings. Types with less than a quarter of a
//     page of records, 1 KiB, are on one page together: if a disk has that as it was some
//     transactions before, since it has not made a write that it acknowledged, they open as of then.
//   - Failed syncs: Linux then takes for written what is in its memory alone, and a program that
//     opens the file reads that. Commits on top of that can be lost by a power cut, and the file
//     can be damaged. So once a commit has failed ([backend.ErrFailed]), close the file, and have
//     the system forget it before it is opened again: unmount its file system, or, on Linux, dd
//     if=FILE iflag=nocache count=0. Open does not do that, since each start would then read the
//     file from the disk, which can take twice as long.
//   - New files: one is there after a power cut only if its file system can sync a
//     directory. File systems of local disks can, some that are mounted over a network
//     cannot.
//   - Size: the file does not shrink, but free space in it is reused. [Options].ShrinkAt
//     copies it when it is opened, and [Shrink] while it is closed.
//   - Deleted values: those of objects and history that were deleted, and those that
//     [Backend.Rewrite] has replaced, can be read in the file's free space until that is used
//     again or [Shrink] removes it. They are not in snapshots.
//   - Growth: a file that outgrows its memory mapping is mapped again. That waits for the
//     reads in progress, also a snapshot, and all writes wait meanwhile. It happens at
//     64 GiB with 64 bits and at 64 MiB with 32 bits. In a process with less address space than
//     that, as under ulimit -v, it happens whenever the file has doubled.
package bolt
