package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/actors"
)

// System returns the actor system of the host, for packages that run actors of
// their own beside the engines. It is the host's to close.
func (h *Host) System() *actors.System { return h.system }

// Await blocks until ready is signalled or closed, or ctx is done; then it
// returns ctx's cause. On a deterministic host it runs the engines meanwhile,
// and returns [ErrIdle] if that cannot end the wait. It must not be called from
// an actor's turn.
func (h *Host) Await(ctx context.Context, ready <-chan struct{}) error { return h.await(ctx, ready) }

// NewRand returns a source of randomness for one user, seeded by the host's.
func (h *Host) NewRand() *rand.Rand { return h.newRand() }

// CloseTimeout returns how long whatever runs on the host waits in its Close
// for user code to return.
func (h *Host) CloseTimeout() time.Duration { return h.timeout }
