package actors_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

// quitters is a tree of actors any of whose methods ends its goroutine at times, as t.FailNow
// does in a function of a test.
type quitters struct {
	mu   sync.Mutex
	rand *rand.Rand
	refs []*actors.Ref[none]
	// handled counts the messages that were received or dropped.
	handled atomic.Int64
}

type none struct{}

// oneIn reports true once in n calls.
func (q *quitters) oneIn(n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.rand.IntN(n) == 0
}

func (q *quitters) quit() {
	if q.oneIn(4) {
		runtime.Goexit()
	}
}

func (q *quitters) spawn(parent actors.Parent, depth int) {
	ref := actors.Spawn(parent, "quitter", func() actors.Behavior[none] { return &quitter{q, depth} }, actors.Options{})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refs = append(q.refs, ref)
}

// any returns one of the actors.
func (q *quitters) any() *actors.Ref[none] {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refs[q.rand.IntN(len(q.refs))]
}

// quitter is one of the actors, with depth generations below it.
type quitter struct {
	*quitters
	depth int
}

func (q *quitter) Started(ctx *actors.Context) {
	for range q.depth {
		q.spawn(ctx, q.depth-1)
		w := &quittingWaker{quitters: q.quitters}
		if actors.SpawnWake(ctx, w, &w.WakeBox, nil) == nil {
			w.Wake()
		}
	}
	q.quit()
}

func (q *quitter) Receive(*actors.Context, none)           { q.handled.Add(1); q.quit() }
func (q *quitter) Dropped(none)                            { q.handled.Add(1); q.quit() }
func (q *quitter) Flush(*actors.Context)                   { q.quit() }
func (q *quitter) Restarting(*actors.Context)              { q.quit() }
func (q *quitter) Stopping(*actors.Context)                { q.quit() }
func (q *quitter) Stopped(*actors.Context)                 { q.quit() }
func (q *quitter) ChildStopped(*actors.Context, actors.ID) { q.quit() }
func (q *quitter) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	q.quit()
	q.mu.Lock()
	defer q.mu.Unlock()
	return actors.Directive(q.rand.IntN(3))
}

// quittingWaker is a wake actor among them.
type quittingWaker struct {
	actors.WakeBox
	*quitters
}

func (w *quittingWaker) Started(*actors.Context)            { w.quit() }
func (w *quittingWaker) Woken(*actors.Context) (again bool) { w.quit(); return false }
func (w *quittingWaker) Stopping(*actors.Context)           { w.quit() }
func (w *quittingWaker) Stopped(*actors.Context)            { w.quit() }

// Whatever ends its goroutine, all actors end, and each message that was accepted is received or
// dropped, once.
func TestGoexit_InAnyMethodKeepsNoActorFromEnding(t *testing.T) {
	for seed := range uint64(100) {
		sys, err := actors.NewSystem(actors.SystemConfig{Workers: 2, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		q := &quitters{rand: rand.New(rand.NewPCG(seed, 0))}
		for range 2 {
			q.spawn(sys, 2)
		}
		accepted := int64(0)
		for range 100 {
			ref := q.any()
			if q.oneIn(20) {
				ref.Stop()
			} else if ref.Tell(none{}) {
				accepted++
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		require.NoError(t, sys.Close(ctx), "seed %d", seed)
		cancel()
		require.Equal(t, accepted, q.handled.Load(), "seed %d", seed)
		require.Zero(t, sys.Actors(), "seed %d", seed)
	}
}
