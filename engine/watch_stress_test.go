package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// seen is what a consumer of the stress test was given.
type seen struct {
	selector string
	events   []engine.Event[pod]
}

// churn has several writers change few keys, so that objects come and go from
// every selection.
func churn(t testing.TB, ctx context.Context, e *engine.Engine[pod], writers, writes int) *sync.WaitGroup {
	var running sync.WaitGroup
	for n := range writers {
		random := rand.New(rand.NewPCG(uint64(n), 1))
		running.Go(func() {
			for i := range writes {
				p := pod{Name: fmt.Sprint("pod-", n, "-", random.IntN(3)), App: []string{"web", "db"}[random.IntN(2)], N: i + 1}
				if _, err := e.Put(ctx, p); err != nil {
					t.Errorf("put: %v", err)
				}
			}
		})
	}
	return &running
}

// Watches with and without selectors, pulled and handled, that stop and come
// back where they were while writers write, are each given exactly what their
// selector shows of the history, in order.
func TestWatch_EachIsGivenItsProjection(t *testing.T) {
	e, ctx := newEngine(t, nil)
	const writers, writes = 3, 60
	var consumers sync.WaitGroup
	results := make([]seen, 12)
	for i := range results {
		r, random := &results[i], rand.New(rand.NewPCG(uint64(i), 2))
		r.selector = []string{"", "app=web", "app=db"}[i%3]
		start := pull
		if i >= 6 {
			start = handled
		}
		consumers.Go(func() { start(t, ctx, e, r, random) })
	}
	truth, err := e.Watch(ctx, engine.WatchOptions{From: 1})
	require.NoError(t, err)
	churn(t, ctx, e, writers, writes).Wait()
	for _, app := range []string{"web", "db"} {
		_, err := e.Create(ctx, pod{Name: "end-" + app, App: app})
		require.NoError(t, err)
	}
	consumers.Wait()
	var history []store.Event
	for len(history) < writers*writes+2 {
		events, err := truth.Next(ctx)
		require.NoError(t, err)
		for _, ev := range events {
			history = append(history, store.Event{
				Type: ev.Type, Revision: ev.Revision, Object: store.Header(ev.Object), Prev: store.Header(ev.Prev),
			})
		}
	}
	schema := cfg().Schema()
	for i, r := range results {
		filter, err := store.NewFilter(nil, store.FilterOptions{Labels: r.selector})
		require.NoError(t, err)
		require.Equal(t, names(watcher.ConvertBatch(&schema, filter, history)), names(r.events), "consumer %d, selector %q", i, r.selector)
	}
}

// complete reports whether the consumer has been given the last event for it.
func (s *seen) complete() bool {
	last := map[string]string{"": "end-db", "app=web": "end-web", "app=db": "end-db"}[s.selector]
	return len(s.events) > 0 && s.events[len(s.events)-1].Key() == last
}

// pull reads all that is for it, and stops and resumes at random.
func pull(t testing.TB, ctx context.Context, e *engine.Engine[pod], s *seen, random *rand.Rand) {
	impatient, cancel := context.WithCancel(ctx)
	cancel()
	from := engine.Revision(1)
	for !s.complete() {
		w, err := e.Watch(ctx, engine.WatchOptions{From: from, Labels: s.selector, Buffer: 1 + random.IntN(20)})
		if err != nil {
			t.Errorf("watch from %d: %v", from, err)
			return
		}
		for leave := false; !leave && !s.complete(); leave = random.IntN(8) == 0 {
			waiting := ctx
			if random.IntN(4) == 0 {
				waiting = impatient
			}
			events, err := w.Next(waiting)
			if err != nil && waiting == ctx {
				t.Errorf("next: %v", err)
				return
			}
			s.events = append(s.events, events...)
		}
		w.Stop()
		from = w.Revision()
	}
}

// handled is pull with a handler, which may be running while its watch is
// stopped: what it was given last is where it resumes.
func handled(t testing.TB, ctx context.Context, e *engine.Engine[pod], s *seen, random *rand.Rand) {
	from, onPool := engine.Revision(1), random.IntN(2) == 0
	for !s.complete() {
		var mu sync.Mutex
		over, enough, left := false, 1+random.IntN(30), make(chan struct{})
		w, err := e.Handle(ctx, engine.WatchOptions{From: from, Labels: s.selector, OnPool: onPool}, func(ev engine.Event[pod]) {
			mu.Lock()
			defer mu.Unlock()
			if over {
				return
			}
			s.events = append(s.events, ev)
			from = ev.Revision
			if enough--; enough == 0 || s.complete() {
				over = true
				close(left)
			}
		})
		if err != nil {
			t.Errorf("handle from %d: %v", from, err)
			return
		}
		select {
		case <-left:
		case <-ctx.Done():
			t.Errorf("hangs at %d: %v", from, context.Cause(ctx))
			return
		}
		w.Stop()
	}
}

// Watches are stopped by their consumers, by their contexts, by deadlines and
// by the engine's Close, all at once and while writers write. Each says why it
// ended, and nothing is left.
func TestWatch_StoppedFromEverywhereWhileClosing(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host = host })
	var running sync.WaitGroup
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	running.Go(func() {
		for n := 0; stop.Err() == nil; n++ {
			if _, err := e.Put(ctx, pod{Name: "a", App: "web", N: n}); err != nil {
				return
			}
		}
	})
	for i := range 16 {
		random := rand.New(rand.NewPCG(uint64(i), 3))
		running.Go(func() {
			for oneOfMany(t, stop, e, random) {
			}
		})
	}
	eventually(t, ctx, func() bool { return e.Stats().Events > 500 })
	require.NoError(t, e.Close())
	left := host.Actors() + host.Timers() // at once, though timers fire meanwhile
	cancel()
	running.Wait()
	require.Zero(t, left)
	require.NoError(t, host.Close())
}

// oneOfMany starts a watch of some kind and ends it some way. It reports
// whether the engine goes on.
func oneOfMany(t testing.TB, ctx context.Context, e *engine.Engine[pod], random *rand.Rand) bool {
	of, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := engine.WatchOptions{
		Labels: []string{"", "app=web"}[random.IntN(2)], InitialState: random.IntN(2) == 0, Bookmarks: random.IntN(2) == 0,
		Policy: engine.Policy(random.IntN(3)), Buffer: 1 + random.IntN(5), Timeout: time.Duration(random.IntN(3)) * time.Millisecond,
	}
	var w *engine.Watch[pod]
	var err error
	if random.IntN(2) == 0 {
		w, err = e.Handle(of, opts, func(engine.Event[pod]) {})
	} else {
		w, err = e.Watch(of, opts)
	}
	if err != nil {
		return ctx.Err() == nil && e.Stats().Ready && err != engine.ErrEngineClosed
	}
	switch random.IntN(4) {
	case 0:
		cancel()
		<-w.Done()
	case 1:
		for range w.Chan() {
			break // and walk away
		}
	case 2:
		_, _ = w.Next(of)
	}
	w.Stop()
	<-w.Done()
	if w.Err() == nil {
		t.Error("a watch ended without a reason")
	}
	return true
}

// Stop returns though the channel's consumer has walked away, and the channel
// is closed.
func TestWatch_StopIsNotBlockedByAnUnreadChannel(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	events := w.Chan()
	for n := range 10 {
		_, err := e.Put(ctx, pod{Name: "a", N: n + 1})
		require.NoError(t, err)
	}
	require.Equal(t, engine.Revision(2), (<-events).Revision)
	w.Stop()
	left := 0
	for range events {
		left++
	}
	require.LessOrEqual(t, left, 1, "only the one that was on offer")
	require.ErrorIs(t, w.Err(), engine.ErrStopped)
}

// Bookmarks fall due while their watches are stopped. Bookmarks that come are
// in order.
func TestWatch_BookmarksWhileStopping(t *testing.T) {
	clock := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	host, err := engine.NewHost(engine.HostConfig{Clock: clock})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host, c.BookmarkPeriod = host, time.Second })
	// Once an event has come, the Reflector watches. Before that, the clock may pass the age
	// of what was written after its list, and it would wait for the clock to list again.
	first, err := e.Put(ctx, pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, e.WaitForRevision(ctx, first.Revision))
	for n := range 100 {
		w, err := e.Watch(ctx, engine.WatchOptions{Bookmarks: true, InitialState: true})
		require.NoError(t, err)
		var together sync.WaitGroup
		together.Go(func() { clock.Advance(2 * time.Second) })
		together.Go(func() {
			if _, err := e.Put(ctx, pod{Name: "a", N: n + 1}); err != nil {
				t.Error(err)
			}
		})
		together.Go(func() {
			var last engine.Revision
			for range 3 {
				events, err := w.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				for _, ev := range events {
					if ev.Revision < last {
						t.Errorf("%v after revision %d", ev, last)
					}
					last = ev.Revision
				}
				if last == first.Revision+engine.Revision(n+1) {
					break
				}
			}
			w.Stop()
		})
		together.Wait()
	}
	eventually(t, ctx, func() bool { return e.Stats().Watches == 0 })
}
