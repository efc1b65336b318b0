package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// burstWrites is how many writes a burst has: fewer under the race detector,
// which makes each ten times as expensive.
func burstWrites() int {
	if raceEnabled() {
		return 10_000
	}
	return 100_000
}

// Ten watchers and 100,000 writes as fast as they go, with the defaults: every
// watcher gets every write, whether it pulls or handles, whatever its policy.
// Park and Conflate promise it; Terminate does not, but says so if it ends.
func TestBurst_LosesNothing(t *testing.T) {
	for _, policy := range []engine.Policy{engine.Park, engine.Conflate} {
		for _, how := range []string{"pulled", "handled", "handled on the pool"} {
			t.Run(policy.String()+" "+how, func(t *testing.T) {
				e, err := engine.New(cfg())
				require.NoError(t, err)
				defer func() { require.NoError(t, e.Close()) }()
				writes := burstWrites()
				var consumers sync.WaitGroup
				tallies := make([]tally, 10)
				for i := range tallies {
					tallies[i].want = writes
					tallies[i].done = make(chan struct{})
					tallies[i].consume(t, e, &consumers, engine.WatchOptions{Policy: policy, OnPool: how == "handled on the pool"}, how == "pulled")
				}
				for n := range writes {
					_, err := e.Put(t.Context(), pod{Name: fmt.Sprint("pod", n%100), N: n})
					require.NoError(t, err)
				}
				for i := range tallies {
					<-tallies[i].done
				}
				consumers.Wait()
				for i := range tallies {
					require.Empty(t, tallies[i].wrong, "watcher %d", i)
				}
				require.Zero(t, e.Stats().Expired)
			})
		}
	}
}

// tally checks that the writes come one after the other, up to the first that
// does not.
type tally struct {
	seen, want int
	wrong      string
	done       chan struct{} // closed at the end, and at the first that is wrong
}

func (y *tally) take(ev engine.Event[pod]) {
	switch {
	case y.wrong != "":
	case ev.Object.Value.N != y.seen || ev.Marks != 0:
		y.fail(fmt.Sprintf("write %d came as %v, which is write %d", y.seen, ev, ev.Object.Value.N))
	default:
		if y.seen++; y.seen == y.want {
			close(y.done)
		}
	}
}

func (y *tally) fail(wrong string) {
	y.wrong = wrong
	close(y.done)
}

// consume starts a watch whose events the tally takes.
func (y *tally) consume(t *testing.T, e *engine.Engine[pod], consumers *sync.WaitGroup, opts engine.WatchOptions, pulled bool) {
	if !pulled {
		_, err := e.Handle(t.Context(), opts, y.take)
		require.NoError(t, err)
		return
	}
	w, err := e.Watch(t.Context(), opts)
	require.NoError(t, err)
	consumers.Go(func() {
		for y.seen < y.want && y.wrong == "" {
			events, err := w.Next(context.Background())
			if err != nil {
				y.fail(err.Error())
				return
			}
			for _, ev := range events {
				y.take(ev)
			}
		}
	})
}

// A window that holds far less than the burst: a watch that conflates may leave
// writes out, but ends up with the state as it is; one that is terminated or
// expires has had everything up to a point, without a hole.
func TestBurst_BeyondTheWindow(t *testing.T) {
	for _, policy := range []engine.Policy{engine.Park, engine.Terminate, engine.Conflate} {
		t.Run(policy.String(), func(t *testing.T) {
			c := cfg()
			c.Window.MaxEvents = 256
			e, err := engine.New(c)
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			w, err := e.Watch(t.Context(), engine.WatchOptions{Policy: policy, Buffer: 64})
			require.NoError(t, err)
			writes := burstWrites() / 10
			for n := range writes {
				name := fmt.Sprint("pod", n%100)
				if n == writes-1 {
					name = "last"
				}
				_, err = e.Put(t.Context(), pod{Name: name, N: n})
				require.NoError(t, err)
			}
			have, next, end := map[string]int{}, 0, error(nil)
			for have["last"] == 0 && end == nil {
				var events []engine.Event[pod]
				events, end = w.Next(t.Context())
				for _, ev := range events {
					if policy != engine.Conflate {
						require.Equal(t, next, ev.Object.Value.N, "no hole")
						next++
					}
					have[ev.Key()] = ev.Object.Value.N
				}
			}
			if policy != engine.Conflate {
				require.Error(t, end, "it cannot have got everything")
				return
			}
			require.NoError(t, end)
			l, err := e.List(t.Context(), engine.ListOptions{})
			require.NoError(t, err)
			state := map[string]int{}
			for _, o := range l.Items {
				state[o.Key] = o.Value.N
			}
			require.Equal(t, state, have)
		})
	}
}

// Idle watchers are actors without a goroutine, and all are gone after Close.
func TestWatch_IdleOnesHaveNoGoroutines(t *testing.T) {
	watchers := 10_000
	if !raceEnabled() && !testing.Short() {
		watchers = 100_000
	}
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	c := cfg()
	c.Host = host
	e, err := engine.New(c)
	require.NoError(t, err)
	require.NoError(t, e.WaitForRevision(t.Context(), 1))
	before := runtime.NumGoroutine()
	held := make([]*engine.Watch[pod], watchers)
	for i := range held {
		opts := engine.WatchOptions{Labels: fmt.Sprint("app=a", i%100)}
		if i%2 == 0 {
			opts.Labels = ""
		}
		held[i], err = e.Watch(context.Background(), opts)
		require.NoError(t, err)
	}
	require.Less(t, runtime.NumGoroutine()-before, 50)
	require.EqualValues(t, watchers, e.Stats().Watches)
	_, err = e.Create(t.Context(), pod{Name: "p", App: "a7"})
	require.NoError(t, err)
	for _, i := range []int{0, 7, watchers - 2} {
		events, err := held[i].Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 1)
	}
	require.Less(t, runtime.NumGoroutine()-before, 50, "even once they were woken")
	require.NoError(t, e.Close())
	require.Zero(t, host.Actors())
	require.Zero(t, host.Timers())
	for _, w := range held {
		require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
	}
}
