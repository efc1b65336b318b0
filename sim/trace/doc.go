// Package trace reads recorded histories of object changes: puts and deletions with
// their times, in the order in which they happened.
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
//	version  the object's content after the change; optional for a delete
//
// Lines are in the order of the changes, whatever their times say. A line has at
// most [MaxLine] bytes, and one line is held in memory at a time: reading takes a
// few MiB, however large the file is and however well it is compressed.
//
// # Errors
//
// Reading is strict, because measurements with a trace that was read in part, or by
// guesswork, would be doubtful. Each error is an [*Error] with the file and the line.
// The loop decides whether to go on after a bad line:
//
//	for change, err := range trace.ReadFile(name) {
//		if err != nil {
//			return err // or count it and continue
//		}
//		...
//	}
//
// # Concurrency
//
// An iterator reads in the goroutine that ranges over it, and only during the loop. A
// [State] must not be used by several goroutines at once.
package trace
