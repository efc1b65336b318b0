package bolt

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/codec"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// Options qualifies Open. The zero value is valid.
type Options struct {
	// LockTimeout is how long to wait for another process to close the file;
	// zero means one second.
	LockTimeout time.Duration
	// CloseTimeout is how long Close commits queued writes, and then how long it waits for the
	// discarding of history and other writes; zero means ten seconds.
	CloseTimeout time.Duration
	// SnapshotTimeout is how long a Snapshot may take; meanwhile free space in the file
	// is not reused. Zero means ten minutes.
	SnapshotTimeout time.Duration
	// MaxBytes is the largest size of the file, at least 512 KiB, and 128 of the system's pages
	// where these have more than 4 KiB; zero means no limit but the disk's. A process of 32 bits has
	// no file of 2 GiB, whatever the limit.
	//
	// A sixteenth of it is reserved for discarding history; 16 pages if that is more, or eight times the
	// size of the largest object, but then at most a quarter. The removal of objects may use half of the
	// reserve.
	MaxBytes int64
	// ShrinkAt is the part of the file, between 0 and 1, that must be unused for
	// Open to copy it into a smaller one, which takes a few seconds for each 100
	// MB; zero means never. If it cannot be copied, as on a full disk, it is used as it
	// is, and OnError is told.
	ShrinkAt float64
	// ReadOnly opens an existing file for reading, which any number of processes can do
	// at a time. Nothing expires then. It excludes MaxBytes, ShrinkAt and Salvage.
	ReadOnly bool
	// Salvage discards damaged records, and the history up to them, where Open would
	// fail otherwise. Info.Repairs lists what it did.
	Salvage bool
	// Clock is the time of writes and expiries; nil means [clock.Real]. The function that
	// deletes what has expired waits for the disk: a clock that calls its functions one after
	// the other makes the others wait, too.
	Clock clock.Clock
	// OnError, if any, is called for errors in the background, for the failure of the disk that
	// ends writing, for what Salvage did, and if the file could not be shrunk. It is called from
	// any goroutine, must not block and must not call the file. Info.LastError has the last one,
	// and with it a panic of OnError.
	OnError func(error)
}

// The defaults of Options, and of Config.Retain.
const (
	// DefaultCloseTimeout is how long Close commits queued writes.
	DefaultCloseTimeout = 10 * time.Second
	// DefaultSnapshotTimeout is how long a Snapshot may take.
	DefaultSnapshotTimeout = 10 * time.Minute
	// DefaultMinEvents is how many of the newest events stay, whatever their age.
	DefaultMinEvents = 100_000
	// DefaultMinAge is how long older events stay.
	DefaultMinAge = 5 * time.Minute
	// DefaultMaxEvents is the most events that stay.
	DefaultMaxEvents = 1_000_000
)

func (o Options) validate() error {
	if o.CloseTimeout < 0 {
		return &usercode.ConfigError{Field: "Options.CloseTimeout", Problem: fmt.Sprintf("is %v, which is negative; zero means %v", o.CloseTimeout, DefaultCloseTimeout)}
	}
	if o.SnapshotTimeout < 0 {
		return &usercode.ConfigError{Field: "Options.SnapshotTimeout", Problem: fmt.Sprintf("is %v, which is negative; zero means %v", o.SnapshotTimeout, DefaultSnapshotTimeout)}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.CloseTimeout == 0 {
		o.CloseTimeout = DefaultCloseTimeout
	}
	if o.SnapshotTimeout == 0 {
		o.SnapshotTimeout = DefaultSnapshotTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	return o
}

func (o Options) journal() journal.Options {
	return journal.Options{
		LockTimeout: o.LockTimeout, MaxBytes: o.MaxBytes, ShrinkAt: o.ShrinkAt,
		ReadOnly: o.ReadOnly, Salvage: o.Salvage,
	}
}

// Policy is what to do with values that cannot be decoded.
type Policy int

// The policies.
const (
	// Fail makes New fail, naming the object, and ends a watch that meets such a value in
	// older history with a [*backend.UndecodableError].
	Fail Policy = iota
	// Keep keeps the object under its key. Get and List fail with a
	// [*backend.UndecodableError] for it, which has its revision: a write that expects
	// that revision can replace or remove it, and Remove returns it with the zero value.
	// A watch continues: the event's object has its key and revision and the zero value.
	Keep
)

// Config describes the objects of one type. Schema is required.
type Config struct {
	// Schema is that of the objects.
	Schema store.Schema
	// Codec encodes the values; nil means [codec.JSON].
	Codec codec.Codec
	// Sealer encrypts the encoded values; nil leaves them readable.
	Sealer codec.Sealer
	// Retain bounds the history that watches can resume from and exact reads can read.
	// It is kept in the file, over restarts. Zero fields mean [DefaultMinEvents],
	// [DefaultMinAge], [DefaultMaxEvents] and [window.DefaultMaxBytes]. MinEvents is kept
	// even beyond MaxBytes, and if the file has no space for a write. With MaxBytes and
	// without MinEvents, the newest [DefaultMinEvents] stay as far as those two allow.
	// ChunkSize is refused, since the file has no chunks.
	//
	// Time during which the process does not run does not count, and neither does setting
	// the wall clock, unless the times of Options.Clock have no monotonic reading. With such
	// a clock history from before a jump ahead is older by that. After a jump back history
	// stays, up to MaxEvents and MaxBytes, until the clock is where it was.
	Retain window.Limits
	// Indexes are those of the state, for caches that share it; see
	// [backend.List].State. An engine with engine.Config.Index or IndexLabels shares it only
	// if it has all of these; otherwise the engine keeps a state of its own beside it. The
	// schema's Fields.Attribute and [store.LabelAttribute] return them.
	Indexes []store.Attribute
	// OnUndecodable is what to do with values that cannot be decoded.
	OnUndecodable Policy
	// OnProgress, if any, is called by New after each 10,000 records that it has read,
	// with their number and an estimate of how many there are. It runs in the goroutine
	// of New, which waits for it, and must not use the file. A panic in it is passed to
	// Options.OnError, and it is not called again.
	OnProgress func(done, total int)
	// FirstRevision is that of new, empty storage. Zero means the microseconds since
	// 1970, so that revisions of a file that was deleted are older than this one's. A restore
	// adds 2^32 to them, which is 72 minutes of microseconds: where a file takes the place of
	// one that was restored within that time, give a revision above the last of that.
	FirstRevision store.Revision
}

// maxFirst is the largest revision that storage may begin at. Those that follow it fit in 63
// bits, as continue tokens need it.
const maxFirst = 1 << 62

// maxName is the length of the longest name of a type in bytes.
const maxName = journal.MaxName

func (c Config) validate(name string) error {
	invalid := func(option, problem string) error { return &usercode.ConfigError{Field: option, Problem: problem} }
	switch {
	case name == "" || len(name) > maxName || !utf8.ValidString(name):
		return invalid("name", fmt.Sprintf("is %q; give a type name of 1 to %d bytes of UTF-8", name, maxName))
	case c.Schema.New == nil || c.Schema.Clone == nil || c.Schema.Pointer == nil || c.Schema.Describe == nil || c.Schema.Size == nil:
		return invalid("Schema", "has functions missing; give that of the type, such as engine.Config.Schema returns")
	case c.OnUndecodable != Fail && c.OnUndecodable != Keep:
		return invalid("OnUndecodable", fmt.Sprintf("is %d; give Fail or Keep", c.OnUndecodable))
	case c.Retain.ChunkSize != 0:
		return invalid("Retain.ChunkSize", fmt.Sprintf("is %d, but the file has no chunks; leave it zero", c.Retain.ChunkSize))
	case c.FirstRevision > maxFirst:
		return invalid("FirstRevision", fmt.Sprintf("is %d, which is too large; leave it zero", c.FirstRevision))
	}
	return c.Retain.Validate("Retain")
}

func (c Config) withDefaults(now time.Time) Config {
	if c.Codec == nil {
		c.Codec = codec.JSON{}
	}
	if c.FirstRevision == 0 {
		c.FirstRevision = store.Revision(max(1, now.UnixMicro()))
	}
	r := &c.Retain
	if r.MaxEvents == 0 {
		r.MaxEvents = max(DefaultMaxEvents, r.MinEvents)
	}
	if r.MinEvents == 0 && r.MaxBytes == 0 {
		r.MinEvents = min(DefaultMinEvents, r.MaxEvents)
	}
	if r.MinAge == 0 {
		r.MinAge = DefaultMinAge
	}
	if r.MaxBytes == 0 {
		r.MaxBytes = window.DefaultMaxBytes
	}
	return c
}

// hotLimits bound the part of the history that is also in memory, which watches read
// without using the file.
var hotLimits = window.Limits{MinAge: window.DefaultMinAge, MaxEvents: 16_384, MaxBytes: 32 << 20}
