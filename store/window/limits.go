package window

import (
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Default limits of a [Window].
const (
	// DefaultMinAge lets a client resume from its last bookmark: bookmarks are at
	// most 60 s apart, plus 15 s to reconnect.
	DefaultMinAge = 75 * time.Second
	// DefaultMaxBytes is 256 MiB of objects.
	DefaultMaxBytes = 256 << 20
	// DefaultMaxEvents is as many objects of [store.DefaultSize] as DefaultMaxBytes
	// holds, about a million, so that for larger objects the bytes are the bound.
	// The events themselves take 32 B each, 32 MiB in all. A burst of 100,000
	// writes fits ten times.
	DefaultMaxEvents = DefaultMaxBytes / store.DefaultSize
	// DefaultChunkSize makes a chunk of 8 KiB, and reading a past state cost at
	// most 255 writes to a tree.
	DefaultChunkSize = 256
)

// Limits bounds what a [Window] keeps. The zero value keeps at least 75 s,
// unless that is more than a million events or 256 MiB.
//
// Events are dropped in whole chunks, so a window holds up to a chunk more than
// MinAge and MinEvents require. If limits contradict each other, MinEvents wins
// over MaxEvents and MaxBytes, and these win over MinAge.
type Limits struct {
	// MinAge is how long an event stays. Zero means [DefaultMinAge].
	MinAge time.Duration
	// MinEvents is how many of the newest events stay, whatever their age and
	// size. Zero means none.
	MinEvents int
	// MaxEvents is the most events that stay. Zero means [DefaultMaxEvents].
	MaxEvents int
	// MaxBytes is the most bytes of objects that stay, by the estimate given to
	// [New]; the newest chunk stays in any case. Zero means
	// [DefaultMaxBytes].
	MaxBytes int64
	// ChunkSize is the events per chunk. Zero means [DefaultChunkSize], or a
	// quarter of MaxEvents if that is less.
	ChunkSize int
}

// Validate returns a [*usercode.ConfigError] unless a window can keep to the
// limits. Setting is where the user sets them, as in "Config.Window".
func (l Limits) Validate(setting string) error {
	invalid := func(field, format string, args ...any) error {
		return &usercode.ConfigError{Field: setting + "." + field, Problem: fmt.Sprintf(format, args...)}
	}
	full := l.WithDefaults()
	switch {
	case l.MinAge < 0:
		return invalid("MinAge", "is %v, which is negative; zero means %v", l.MinAge, DefaultMinAge)
	case l.MinEvents < 0:
		return invalid("MinEvents", "is %d, which is negative; zero means none", l.MinEvents)
	case l.MaxEvents < 0:
		return invalid("MaxEvents", "is %d, which is negative; zero means %d", l.MaxEvents, DefaultMaxEvents)
	case l.MaxBytes < 0:
		return invalid("MaxBytes", "is %d, which is negative; zero means %d", l.MaxBytes, DefaultMaxBytes)
	case l.ChunkSize < 0:
		return invalid("ChunkSize", "is %d, which is negative; zero means %d", l.ChunkSize, DefaultChunkSize)
	case l.MinEvents > full.MaxEvents:
		return invalid("MinEvents", "is %d, more than MaxEvents, %d; raise that", l.MinEvents, full.MaxEvents)
	case l.ChunkSize > full.MaxEvents:
		return invalid("ChunkSize", "is %d, more than MaxEvents, %d; leave it zero", l.ChunkSize, full.MaxEvents)
	}
	return nil
}

// WithDefaults returns the limits that a window with l keeps to. It fills in what is not
// given, and what Validate would reject, so that a window works with any limits.
func (l Limits) WithDefaults() Limits {
	if l.MinAge <= 0 {
		l.MinAge = DefaultMinAge
	}
	if l.MaxEvents <= 0 {
		l.MaxEvents = DefaultMaxEvents
	}
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	if l.ChunkSize <= 0 {
		l.ChunkSize = max(1, min(DefaultChunkSize, l.MaxEvents/4))
	}
	l.ChunkSize = min(l.ChunkSize, l.MaxEvents)
	return l
}

// maxChunkBytes ends a chunk of large objects early, so that dropping
// one does not drop most of the window.
func (l Limits) maxChunkBytes() int64 { return max(1, l.MaxBytes/8) }
