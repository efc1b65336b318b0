package memory

import (
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
)

// DefaultRetainAge is how long history is kept at least: as long as an API
// server keeps it in etcd, which it compacts every five minutes.
const DefaultRetainAge = 5 * time.Minute

// Options qualifies a Backend. The zero value is good for production.
type Options struct {
	// Clock says when things are written and expire; nil means
	// [clock.Real].
	Clock clock.Clock
	// Retain bounds the history that exact reads and watches can go back to.
	// It is compacted when it is older than MinAge (zero means
	// [DefaultRetainAge]), and before that when it outgrows the other bounds;
	// see [store.WindowLimits] for their defaults. What a watch with
	// WatchOptions.State has not read stays, up to the defaults if these are more.
	Retain store.WindowLimits
	// Indexes are kept in the state, for caches that take it over; see
	// [backend.List].State.
	Indexes []store.Attribute
}

// withDefaults returns o with the defaults in place.
func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Retain.MinAge == 0 {
		o.Retain.MinAge = DefaultRetainAge
	}
	return o
}
