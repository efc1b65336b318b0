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
	"github.com/watchmill/watchmill/clock"
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

// Whatever ends its goroutine, OnFailure too, all actors end, and each message that was accepted is received or
// dropped, once.
func TestGoexit_InAnyMethodKeepsNoActorFromEnding(t *testing.T) {
	for seed := range uint64(100) {
		q := &quitters{rand: rand.New(rand.NewPCG(seed, 0))}
		sys, err := actors.NewSystem(actors.SystemConfig{
			Workers: 2, Logger: slog.New(slog.DiscardHandler), OnFailure: func(actors.Failure) { q.quit() },
		})
		require.NoError(t, err)
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

// The parent that is asked about a failure fails itself. Both are told of.
func TestGoexit_InChildFailedHidesNoFailure(t *testing.T) {
	for what, spawn := range map[string]func(*actors.Context){
		"actor with a queue": func(ctx *actors.Context) {
			spawnProbe(ctx, &probe{journal: new(journal), name: "child"}, actors.Options{}).Tell(boom("1"))
		},
		"wake actor": func(ctx *actors.Context) {
			w := &recordingWaker{journal: new(journal), woken: func(*actors.Context) bool { panic("boom 1") }}
			_ = actors.SpawnWake(ctx, w, &w.WakeBox, nil)
			w.Wake()
		},
	} {
		t.Run(what, func(t *testing.T) {
			var failed failures
			asked := make(chan struct{})
			sys := newSystem(t, actors.SystemConfig{OnFailure: func(f actors.Failure) {
				failed.add(f)
				if f.Actor == "parent" {
					close(asked)
				}
			}})
			parent := spawnProbe(sys, &probe{journal: new(journal), name: "parent", hooks: map[string]func(*actors.Context){
				`asked about "boom 1"`: func(*actors.Context) { runtime.Goexit() },
			}}, actors.Options{})
			parent.Tell(run("spawn", spawn))
			<-asked
			require.NoError(t, sys.Close(t.Context()))
			require.Contains(t, failed.take(), ": boom 1: Stop")
		})
	}
}

// quittingHandler is a handler of log lines that ends its goroutine, as one does that fails a test.
type quittingHandler struct{ panickingHandler }

func (quittingHandler) Handle(context.Context, slog.Record) error { runtime.Goexit(); return nil }

func TestGoexit_OfTheLoggerHidesNoFailure(t *testing.T) {
	var failed failures
	sys := newSystem(t, actors.SystemConfig{OnFailure: failed.add, Logger: slog.New(quittingHandler{})})
	stopped := make(chan struct{})
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a", hooks: map[string]func(*actors.Context){
		"stopped": func(*actors.Context) { close(stopped) },
	}}, actors.Options{})
	ref.Tell(boom("1"))
	<-stopped
	require.Equal(t, "a: boom 1: Stop", failed.take())
}

func TestGoexit_OfTheLoggerHidesNoTurnThatHoldsAWorker(t *testing.T) {
	var failed failures
	clock := clock.NewVirtual(start)
	sys := newSystem(t, actors.SystemConfig{Workers: 1, Clock: clock, OnFailure: failed.add, Logger: slog.New(quittingHandler{})})
	p := newPause(t)
	spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{}).Tell(p.message())
	<-p.entered
	var advanced sync.WaitGroup
	advanced.Go(func() { clock.Advance(2 * time.Second) })
	advanced.Wait()
	require.Equal(t, "a: "+held, failed.take())
	p.release()
}
