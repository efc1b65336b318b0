// Package trace reads recorded histories of object changes: what was put and
// what was deleted, when, in the order in which it happened.
//
//	file ──▶ gzip? (by content) ──▶ lines ──▶ decode, strictly ──▶ iter.Seq2[Change, error] ──▶ State
//
// # The format
//
// One JSON object per line, compressed with gzip or not:
//
//	{"t":1460920094,"op":"put","key":"main.go","version":"2d0400a75607"}
//	{"t":1460988014,"op":"delete","key":"main.go"}
//
//	t        when, in seconds since 1970, whole or with a fraction
//	op       "put" or "delete"
//	key      the object's key, valid by store.ValidateKey
//	version  what the object is from now on; a delete may leave it out
//
// Lines are in the order of the changes, whatever their times say. A line has at
// most [MaxLine] bytes, and one line is held in memory at a time: reading takes a
// few MiB, however large the file is and however well it is compressed.
//
// # Errors
//
// Reading is strict: a trace that is read in part, or by guesswork, would make
// everything that is measured with it doubtful. Each error is an [*Error] with
// the file, the line and what is wrong. The reader goes on after a bad line if
// the consumer does; so whether one bad line condemns a trace is up to the
// loop:
//
//	for change, err := range trace.ReadFile(name) {
//		if err != nil {
//			return err // or count it, and continue
//		}
//		...
//	}
//
// # Concurrency
//
// An iterator reads on the goroutine that ranges over it, and only while it
// does. A [State] belongs to one goroutine.
package trace
