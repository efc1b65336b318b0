package journal

import (
	"context"
	"io"
	"iter"
	"time"
)

// Journal is the file under a backend. All methods are safe for concurrent use; those
// that write wait for one another.
//
// Errors: [ErrClosed] after Close, [ErrCorrupt], [ErrFailed] for writes after a
// commit that failed, [ErrReadOnly], and those of the method.
type Journal interface {
	// Identity returns the identity of the file.
	Identity() Identity

	// Logs returns the names of the logs in the file, sorted.
	Logs() []string

	// Declare returns the bounds of a log. If there is none it creates one: empty, at
	// revision first, so that the first record has the revision after that.
	Declare(name string, first uint64) (Bounds, error)

	// Bounds returns the bounds of a log that was declared.
	Bounds(name string) (Bounds, error)

	// Append writes a batch, all of it or nothing. When it returns nil, the batch
	// survives a crash of the machine. After [ErrFull] nothing has changed. After
	// [ErrFailed] nothing was written either, unless [FailedError].Uncertain says that
	// it may have been. It does not keep the batch.
	Append(b Batch) error

	// Read calls fn with a view of a log at one moment, which is valid until fn returns
	// and only in fn's goroutine. Meanwhile the space of trimmed records cannot be used
	// again, so fn should not take long. A panic in fn counts as damage of the file.
	Read(ctx context.Context, name string, fn func(View) error) error

	// Trim deletes records that the history above the log's floor does not need, within
	// the budget, in one transaction.
	Trim(name string, b Budget) (Trimmed, error)

	// Rewrite replaces the records that are still in the log, in one transaction. The
	// new ones may differ only in how their values are encoded.
	Rewrite(name string, entries []Entry) error

	// Snapshot writes the file, as it is at one moment, to w. Writers wait for it no
	// longer than for a commit. It fails with [ErrTimeout] after timeout, with [ErrClosed] if
	// the file is closed meanwhile, and with [ErrFailed] after a commit that failed.
	Snapshot(ctx context.Context, w io.Writer, timeout time.Duration) (Manifest, error)

	// Usage returns how much of the file is in use, and what Open found and repaired.
	Usage() (Usage, error)

	// Close waits for what is going on, except that snapshots fail with [ErrClosed], and
	// closes the file. A second Close does nothing.
	Close() error
}

// Identity identifies a file and its history.
type Identity struct {
	// ID is random; a restored file has that of its origin.
	ID [16]byte
	// Timeline is one greater after each restore.
	Timeline uint64
	// Branch is random and tells restores of one snapshot apart. It is zero in a file that was
	// not restored, or was by a version that did not have it.
	Branch uint64
	// Format is the version of the file's layout.
	Format uint64
	// Created is when the file was made.
	Created time.Time
}

// Bounds are the revisions that divide a log into discarded history, base and history.
// Trimmed ≤ Floor ≤ Last once there is a floor.
type Bounds struct {
	// First is the revision of the log when it was created, empty.
	First uint64
	// Floor is the oldest revision whose state is known; zero means First, since no
	// history was discarded.
	Floor uint64
	// Trimmed is the revision up to which only the base is left.
	Trimmed uint64
	// Last is the newest revision.
	Last uint64
}

// Oldest returns the oldest revision whose state is known.
func (b Bounds) Oldest() uint64 { return max(b.First, b.Floor) }

// Batch is what one Append makes durable.
type Batch struct {
	// Entries are records to append, those of one log in the order of their revisions
	// and without a gap.
	Entries []Entry
	// Floors are revisions before which to discard the history.
	Floors []Floor
}

// Entry is a record for a log.
type Entry struct {
	// Log is the name of the log.
	Log string
	// Revision is the revision of the record.
	Revision uint64
	// Data is the record, as [Record.AppendTo] encodes it.
	Data []byte
}

// Deletes reports whether the record is a deletion.
func (e *Entry) Deletes() bool { return len(e.Data) > 4 && Kind(e.Data[4]&kindMask) == Delete }

// Floor is the revision of a log up to which history is discarded.
type Floor struct {
	Log      string
	Revision uint64
}

// View is a log at one moment. Its methods fail with [ErrCorrupt] for damaged records. It
// is for the goroutine of Read's function only.
type View interface {
	// Bounds returns the log's bounds at that moment.
	Bounds() Bounds

	// Base returns the number of records in the base, which are those up to
	// Bounds.Trimmed.
	Base() int

	// Scan calls fn with the records whose revisions are greater than after and
	// at most through, in order, until it fails or returns false. The record's
	// bytes are valid only until the view's end.
	Scan(after, through uint64, fn func(revision uint64, r Record) (more bool, err error)) error

	// Pick calls fn with the records of these revisions, which must ascend, until it
	// fails. A record that is missing is damage. The record's bytes are valid only until
	// the view's end.
	Pick(revisions iter.Seq[uint64], fn func(revision uint64, r Record) error) error

	// Get returns the record with a revision, and whether there is one.
	Get(revision uint64) (r Record, found bool, err error)
}

// Budget bounds the work of one transaction. Zero means 10,000 records and 20 ms.
type Budget struct {
	// Records is how many records of the history to process.
	Records int
	// Time is how long to process before the commit.
	Time time.Duration
}

func (b Budget) withDefaults() Budget {
	if b.Records <= 0 {
		b.Records = 10_000
	}
	if b.Time <= 0 {
		b.Time = 20 * time.Millisecond
	}
	return b
}

// Trimmed is the result of a Trim.
type Trimmed struct {
	// Deleted is the number of records that were deleted.
	Deleted int
	// Through is the log's Bounds.Trimmed afterwards.
	Through uint64
	// More: the budget ended before the floor was reached.
	More bool
}

// Usage says how much of a file is in use, and what Open found and repaired.
type Usage struct {
	// Size is the length of the file in bytes, Free is how many of them are unused.
	Size, Free int64
	// Warnings are defects of the file without consequence so far.
	Warnings []string
	// Repairs say what Options.Salvage discarded when the file was opened.
	Repairs []string
	// Unshrunk is why Open could not shrink the file, nil if it did, or did not have to.
	Unshrunk error
}

// Manifest describes a snapshot.
type Manifest struct {
	// ID and Timeline are those of the file.
	ID       string `json:"id"`
	Timeline uint64 `json:"timeline"`
	// Format is the version of the layout.
	Format uint64 `json:"format"`
	// Revisions are the newest revisions, by the names of the logs.
	Revisions map[string]uint64 `json:"revisions"`
	// Bytes is the length of the file inside the snapshot.
	Bytes int64 `json:"bytes"`
	// SHA256 is the checksum of the file, in hexadecimal.
	SHA256 string `json:"sha256"`
}
