package memory

import (
	"fmt"
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// DefaultRetainAge is how long history is kept at least: an API server compacts
// etcd every five minutes.
const DefaultRetainAge = 5 * time.Minute

// Options configures a Backend. The zero value is good for production.
type Options struct {
	// Clock is the time of writes and expiry; nil means [clock.Real].
	Clock clock.Clock
	// Retain bounds the history that exact reads and watches can go back to. It is
	// compacted when it is older than MinAge (zero means [DefaultRetainAge]), and before
	// that when it outgrows the other bounds; see [window.Limits] for their defaults.
	// Events that a watch with WatchOptions.State has not read stay, up to the defaults if
	// these are more. So do, for 10 s, the events after each of the last eight lists with
	// ListOptions.State, unless such a watch has begun from its revision or an earlier one.
	Retain window.Limits
	// Indexes are kept in the state, for caches that share it; see
	// [backend.List].State. An engine with engine.Config.Index or IndexLabels shares it only
	// if it has all of these; otherwise the engine keeps a state of its own beside it. The
	// schema's Fields.Attribute and [store.LabelAttribute] return them.
	Indexes []store.Attribute
	// FirstRevision is that of the storage while it is empty. Zero means the
	// clock's time, see [FirstRevisionAt]: a revision of an earlier storage in memory,
	// which is gone, is then less than all of this one, and is refused as expired.
	// Set it where revisions are to be small or known, as in a test.
	FirstRevision store.Revision
	// Objects are the state to begin with, as of package snapshot: they keep their
	// revisions, identities and times of expiry, and New deletes those that
	// have expired. FirstRevision must not be less than any of theirs; zero begins
	// beyond all of them. They belong to the storage from then on.
	Objects []*store.Object
}

// FirstRevisionAt returns the revision that new storage starts at by default: the
// time since 1970 in quarters of a microsecond, and at least one. So new storage
// starts above all revisions of earlier storage that wrote less than four million a
// second, unless the clock was set back, or has not moved since: that of Windows shows one
// time for up to 16 ms. Until the year 2041 such a number is exact in a float64, which many
// readers of JSON use.
func FirstRevisionAt(t time.Time) store.Revision {
	const perMicrosecond = 4
	const last = int64(maxFirstRevision) / perMicrosecond / 1_000_000 // later the product overflows
	switch seconds := t.Unix(); {
	case seconds < 0:
		return 1
	case seconds >= last:
		return maxFirstRevision
	}
	return store.Revision(max(1, perMicrosecond*t.UnixMicro()))
}

// maxFirstRevision leaves room for more revisions than any storage will have.
const maxFirstRevision store.Revision = 1 << 62

func (o *Options) validate() error {
	if o.FirstRevision > maxFirstRevision {
		return &usercode.ConfigError{Field: "Options.FirstRevision", Problem: fmt.Sprintf("is %d, which is too large; leave it zero", o.FirstRevision)}
	}
	return o.Retain.Validate("Options.Retain")
}

// withDefaults returns o with the defaults in place, or the panic of the clock.
func (o Options) withDefaults() (Options, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Retain.MinAge == 0 {
		o.Retain.MinAge = DefaultRetainAge
	}
	if o.FirstRevision == 0 {
		now, err := expiry.Now(o.Clock)
		if err != nil {
			return o, err
		}
		o.FirstRevision = FirstRevisionAt(now)
		for _, object := range o.Objects {
			o.FirstRevision = max(o.FirstRevision, object.Revision)
		}
	}
	return o, nil
}
