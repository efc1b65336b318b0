package journal

import (
	"context"
	"io"
	"iter"
	"time"
)

// Journal is what the backend needs of the file beneath it. All methods are safe
// for concurrent use; those that write wait for one another.
//
// Errors: [ErrClosed] after Close, [ErrCorrupt], [ErrFailed] for writes after a
// commit that failed, [ErrReadOnly], and what the method says.
type Journal interface {
	// Identity tells files apart.
	Identity() Identity

	// Logs returns the names of the logs in the file, sorted.
	Logs() []string

	// Declare returns the bounds of a log. A log that does not exist is made: it
	// is empty at revision first, and its first record has the revision after
	// that.
	Declare(name string, first uint64) (Bounds, error)

	// Bounds returns the bounds of a log that was declared.
	Bounds(name string) (Bounds, error)

	// Append makes a batch last, all of it or nothing: when it returns nil, the
	// batch survives a crash of the machine. [ErrFull]: nothing of it was written
	// and all is as before. [ErrFailed]: whether it was written is unknown if
	// [*FailedError].Uncertain says so, otherwise it was not.
	Append(b Batch) error

	// Read calls fn with a view of one moment of a log, which is valid until fn
	// returns. It keeps the space of what is trimmed meanwhile from being used
	// again, so fn should not take long. A panic in fn is taken for damage.
	Read(ctx context.Context, name string, fn func(View) error) error

	// Trim deletes records that nothing needs, as far as the log's floor and for
	// as long as the budget lasts, in one transaction.
	Trim(name string, b Budget) (Trimmed, error)

	// Rewrite replaces those of the records that are still in the log, all or none.
	// Only how their values are encoded may differ.
	Rewrite(name string, entries []Entry) error

	// Snapshot writes the file, as it is at one moment, to w. Writers wait for it
	// no longer than for a commit. It fails with [ErrTimeout] once it has taken
	// longer than timeout.
	Snapshot(ctx context.Context, w io.Writer, timeout time.Duration) (Manifest, error)

	// Usage says what the file holds.
	Usage() (Usage, error)

	// Close waits for what is going on and closes the file. A second Close does
	// nothing.
	Close() error
}

// Identity tells files apart, and the lives of one file.
type Identity struct {
	// ID is random; a restored file has that of the one it is a copy of.
	ID [16]byte
	// Timeline is one more with each restore.
	Timeline uint64
	// Format is the version of the file's layout.
	Format uint64
	// Created is when the file was made.
	Created time.Time
}

// Bounds are the revisions at which a log is cut. Trimmed ≤ Floor ≤ Last.
type Bounds struct {
	// First is the revision that the log began at, empty.
	First uint64
	// Floor is the oldest revision whose state is known; zero if none was ever
	// given up, which is as good as First.
	Floor uint64
	// Trimmed is the revision up to which only the base is left.
	Trimmed uint64
	// Last is the newest revision.
	Last uint64
}

// Oldest returns the oldest revision whose state is known.
func (b Bounds) Oldest() uint64 { return max(b.First, b.Floor) }

// Batch is what is to become durable at once.
type Batch struct {
	// Entries are records to append, those of one log in the order of their
	// revisions and without a hole.
	Entries []Entry
	// Floors are revisions to give up the history before.
	Floors []Floor
}

// Entry is a record for a log.
type Entry struct {
	// Log is its name.
	Log string
	// Revision is the record's.
	Revision uint64
	// Data is the record, as [Record.AppendTo] encodes it.
	Data []byte
}

// Floor is a revision of a log, up to which history is given up.
type Floor struct {
	Log      string
	Revision uint64
}

// View is a log at one moment. Its methods fail with [ErrCorrupt] for records
// that are damaged.
type View interface {
	// Bounds returns the log's bounds at that moment.
	Bounds() Bounds

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
	// Records is how many of the history's records to deal with.
	Records int
	// Time is how long to take before the commit.
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

// Trimmed is what a Trim did.
type Trimmed struct {
	// Deleted is the number of records that are gone.
	Deleted int
	// Through is the log's Bounds.Trimmed now.
	Through uint64
	// More: the floor is not reached yet.
	More bool
}

// Usage says what a file holds.
type Usage struct {
	// Size is the file's in bytes, Free what of it is unused.
	Size, Free int64
	// Warnings are what is wrong with the file without consequence so far.
	Warnings []string
	// Repairs are what Options.Salvage gave up when the file was opened.
	Repairs []string
}

// Manifest says what a snapshot holds.
type Manifest struct {
	// ID and Timeline are those of the file.
	ID       string `json:"id"`
	Timeline uint64 `json:"timeline"`
	// Format is the version of the layout.
	Format uint64 `json:"format"`
	// Revisions are the newest ones, by the name of the log.
	Revisions map[string]uint64 `json:"revisions"`
	// Bytes is the length of the file inside the snapshot.
	Bytes int64 `json:"bytes"`
	// SHA256 is its checksum, in hexadecimal.
	SHA256 string `json:"sha256"`
}
