package bolt

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/usercode"
)

// RestoreOptions qualifies Restore. The zero value is valid.
type RestoreOptions struct {
	// Floor is a revision above which all types continue, at most 2^62. It is of use if more
	// than 2^32 revisions were written since the snapshot, or in another file that was restored
	// from it.
	Floor store.Revision
}

// Restore makes a file at path from a snapshot, on a new timeline: revisions continue
// 2^32 above those of the snapshot, and there is no history. So every older revision is
// too old ([store.ErrExpired]), and none refers to a different state.
//
// Each restore of a snapshot is another storage ([Backend.StoreID]), though its revisions continue
// at the same number. A consumer that goes by revisions alone does not notice that it has come from
// one to another: RestoreOptions.Floor, the last revision of the other, makes that one too old.
//
// If it fails, it leaves no file. Errors:
//
//   - [*usercode.ConfigError]: an option is invalid.
//   - [*UnsupportedError]: files cannot be used on this system.
//   - [io/fs.ErrExist]: there is a file at path, which stays.
//   - [backend.ErrCorrupt]: the snapshot is damaged or incomplete. It is a [*CorruptError]
//     that has "the snapshot" for a path.
//   - [ErrFormat]: a newer version made the snapshot.
//   - [backend.ErrFull]: there is no space.
//   - The error of ctx, once ctx is done and r has returned.
//   - The error of r, or a [*usercode.PanicError] if r panics.
func Restore(ctx context.Context, r io.Reader, path string, opts RestoreOptions) (Manifest, error) {
	if opts.Floor > maxFirst {
		return Manifest{}, &usercode.ConfigError{Field: "RestoreOptions.Floor", Problem: fmt.Sprintf("is %d, which is too large; leave it zero, or give the last revision that is known", opts.Floor)}
	}
	return journal.Restore(ctx, r, path, journal.RestoreOptions{Floor: uint64(opts.Floor)})
}

// Shrink replaces the file at path, which no program has open, by a copy without unused
// space, and returns the sizes of both in bytes. They are the same if there is too little
// of that to be worth it, as in a file of less than 1 MiB. It fails like [Open], and with the
// error of ctx once that is done. Then the file is as it was. See also Options.ShrinkAt.
func Shrink(ctx context.Context, path string) (before, after int64, err error) {
	return journal.Shrink(ctx, path, journal.DefaultLockTimeout)
}

// Report is the contents of a file and everything that is wrong with it.
type Report struct {
	Path string
	// Size is the length of the file in bytes.
	Size int64
	// StoreID, Timeline, Branch, Format and Created are as in [Info]. They are zero if damage hides
	// them.
	StoreID  string
	Timeline uint64
	Branch   uint64
	Format   uint64
	Created  time.Time
	// Types has each type by its name. Records is how many records there are of all.
	Types   map[string]TypeInfo
	Records int
	// Warnings are defects without consequence so far.
	Warnings []string
	// Problems are [*CorruptError] and [*FormatError], of up to 1,000 damaged records and
	// as many others; a file that is whole has none. Unlisted is how many more there are.
	Problems []error
	Unlisted int
}

func newReport(r *journal.Report) *Report {
	if r == nil {
		return nil
	}
	report := &Report{
		Path: r.Path, Size: r.Size, Timeline: r.Identity.Timeline, Branch: r.Identity.Branch,
		Format: r.Identity.Format, Created: r.Identity.Created, Types: map[string]TypeInfo{},
		Records: r.Records, Warnings: r.Warnings, Problems: r.Problems, Unlisted: r.Unlisted,
	}
	if r.Identity != (journal.Identity{}) {
		report.StoreID = hex.EncodeToString(r.Identity.ID[:])
	}
	for name, b := range r.Logs {
		report.Types[name] = typeInfo(b)
	}
	return report
}

// Check reads a file that is not open for writing, without changing it, and reports what
// is wrong with its pages, its records, and the history of each object. It fails if the
// file cannot be read, or is locked for a second, and with an [*UnsupportedError].
func Check(path string) (*Report, error) {
	r, err := journal.Check(path, journal.DefaultLockTimeout)
	return newReport(r), err
}

// Record is one change of one object in a file.
type Record struct {
	// Type is the name of the objects' type.
	Type string
	// Event says what happened: Added, Modified, Deleted or Emitted.
	Event store.EventType
	Key   string
	// Revision is that of the change, Created that of the object's creation, and Prev
	// that of its previous change, zero if there is none.
	Revision, Created, Prev store.Revision
	Written, Expires        time.Time
	// Tag and Value are as the codec returned them; if Sealed, Value is encrypted. Value
	// is valid until the function that gets the record returns.
	Tag    uint8
	Sealed bool
	// Lost: [Options].Salvage has discarded the value, which was damaged.
	Lost  bool
	Value []byte
}

// Dump calls fn with all readable records of a file, by type in the order of their
// revisions, until fn fails. The report lists what could not be read. It changes
// nothing, and fails like [Check], or with fn's error.
func Dump(path string, fn func(Record) error) (*Report, error) {
	r, err := journal.DumpTo(path, journal.DefaultLockTimeout, func(name string, revision uint64, r journal.Record) error {
		return fn(Record{
			Type: name, Event: eventType(r), Key: string(r.Key),
			Revision: store.Revision(revision), Created: store.Revision(r.Created), Prev: store.Revision(r.Prev),
			Written: r.Written, Expires: r.Expires, Tag: r.Tag, Sealed: r.Sealed, Lost: r.Lost, Value: r.Value,
		})
	})
	return newReport(r), err
}

// eventType returns the type of a record's change.
func eventType(r journal.Record) store.EventType {
	switch {
	case r.Kind == journal.Delete:
		return store.Deleted
	case r.Kind == journal.Emit:
		return store.Emitted
	case r.Prev == 0:
		return store.Added
	}
	return store.Modified
}
