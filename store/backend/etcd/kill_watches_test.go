package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd"
)

// tick is how often the test looks for what it waits for.
const tick = 10 * time.Millisecond

// recordingBackend is a backend that notes what its watches have handed on.
type recordingBackend struct {
	*etcd.Backend

	mu      sync.Mutex
	batches []backend.Batch
	// attempts is how often the engine has listed, or opened a watch.
	attempts int
}

func (b *recordingBackend) Unwrap() backend.Backend { return b.Backend }

func (b *recordingBackend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	b.attempt()
	w, err := b.Backend.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &recordingWatcher{w, b}, nil
}

func (b *recordingBackend) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	b.attempt()
	return b.Backend.List(ctx, opts)
}

func (b *recordingBackend) attempt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempts++
}

type recordingWatcher struct {
	backend.Watcher
	by *recordingBackend
}

func (w *recordingWatcher) Next(limit int) (backend.Batch, error) {
	batch, err := w.Watcher.Next(limit)
	if err == nil && batch.Through > batch.After {
		w.by.mu.Lock()
		w.by.batches = append(w.by.batches, batch)
		w.by.mu.Unlock()
	}
	return batch, err
}

func (w *recordingWatcher) RequestProgress(ctx context.Context) error {
	return backend.RequestProgress(ctx, w.Watcher)
}

// received returns what its watches have handed on.
func (b *recordingBackend) received() []backend.Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.batches)
}

// attempts returns how often the engine has listed, or opened a watch.
func (p *process) attempts() int {
	p.backend.mu.Lock()
	defer p.backend.mu.Unlock()
	return p.backend.attempts
}

// awaitAttempt waits until the engine has done so more than n times.
func (p *process) awaitAttempt(n int) {
	p.killTest.Helper()
	require.Eventually(p.killTest, func() bool { return p.attempts() > n }, killPatience, tick)
}

// consumer is a reader of watches, with what its watches were given, one after the other.
type consumer struct {
	*process
	name    string
	selects func(thing) bool
	records []*judge.Record[thing]
}

// watchAll starts the watches of a process.
func (p *process) watchAll() {
	all := func(v thing) bool { return v.Name != elsewhere }
	start := p.read(p.killTest)
	p.watch("all", all, engine.WatchOptions{From: start, Bookmarks: true})
	p.watch("state", all, engine.WatchOptions{InitialState: true, Bookmarks: true})
	p.watch("red", func(v thing) bool { return v.Color == "red" }, engine.WatchOptions{From: start, Bookmarks: true, Labels: "color=red"})
	p.watch("prefix", func(v thing) bool { return strings.HasPrefix(v.Name, "k/") }, engine.WatchOptions{From: start, Prefix: "k"})
	p.watch("conflate", all, engine.WatchOptions{InitialState: true, Bookmarks: true, Policy: engine.Conflate, Buffer: 4})
}

func (p *process) watch(name string, selects func(thing) bool, opts engine.WatchOptions) {
	f := &consumer{process: p, name: fmt.Sprint(name, " of process ", p.id), selects: selects}
	p.watches = append(p.watches, f)
	p.watching.Go(func() { f.run(opts) })
}

// run follows until the last write. When the revision that a watch is at is gone, it
// begins anew with the state.
func (f *consumer) run(opts engine.WatchOptions) {
	ctx := context.Background()
	for {
		earliest, relists := f.Engine.Revision(), f.Engine.Stats().Relists
		w, err := f.Engine.Watch(ctx, opts)
		if err == nil {
			r := &judge.Record[thing]{Name: f.name, Selects: f.selects, Options: opts, Earliest: earliest}
			f.records = append(f.records, r)
			if f.consume(ctx, w, r, relists) {
				w.Stop()
				return
			}
		} else if errors.Is(err, engine.ErrEngineClosed) {
			return
		}
		if err == nil || errors.Is(err, engine.ErrExpired) {
			opts.From, opts.InitialState = 0, true
		} else {
			wait(tick) // the engine is not ready
		}
	}
}

// consume reads a watch to its end, or the last write.
func (f *consumer) consume(ctx context.Context, w *engine.Watch[thing], r *judge.Record[thing], relists uint64) (last bool) {
	begun := !r.Options.InitialState || !r.Options.Bookmarks
	for !last || !begun {
		events, err := w.Next(ctx)
		if err != nil {
			r.Ends = append(r.Ends, err, w.Err())
			if s := f.Engine.Stats(); s.Relists > relists || r.MayExpire(s.WindowFloor) {
				r.Causes = append(r.Causes, engine.ErrExpired)
			}
			return false
		}
		for _, ev := range events {
			r.Events = append(r.Events, ev)
			begun = begun || ev.Is(store.InitialEnd)
			last = last || ev.Type != engine.Bookmark && ev.Key() == lastKey
		}
		r.Claims = append(r.Claims, judge.Claim{Events: len(r.Events), Revision: w.Revision()})
	}
	r.Lost, r.Drained = w.Lost(), true
	return true
}

// awaitWatches waits until every watch has the last write.
func (p *process) awaitWatches() {
	p.killTest.Helper()
	done := make(chan struct{})
	go func() { p.watching.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(killPatience):
		require.Fail(p.killTest, "the watches do not come to the last write")
	}
}

// judgeWatches has the judge say whether the watches were given what happened: in order,
// once, whole, as selected, each with its previous state, with bookmarks and claims that
// can be resumed from.
func (x *killTest) judgeWatches() {
	x.Helper()
	for _, p := range x.engines {
		h, ranks := x.bare.history()
		for _, batch := range p.backend.received() {
			for at := ranks.of(batch.After) + 1; at <= ranks.of(batch.Through); at++ {
				h.MarkReceived(at)
			}
		}
		events, ended := 0, 0
		for _, f := range p.watches {
			for _, r := range f.records {
				require.NoError(x, h.Judge(ranks.record(*r)))
				events += len(r.Events)
			}
			ended += len(f.records) - 1
		}
		damaged := withoutAnEvent(x, p.watches[0].records)
		require.Error(x, h.Judge(ranks.record(damaged)), "the judge does not notice that an event is missing")
		s := p.Engine.Stats()
		x.Logf("process %d: %d watches have %d events, %d began anew; %d relists, %d synthetic events", p.id, len(p.watches), events, ended, s.Relists, s.Synthetic)
	}
}

// withoutAnEvent returns a copy of the first record that has a change before another, without
// that change.
func withoutAnEvent(t testing.TB, records []*judge.Record[thing]) judge.Record[thing] {
	t.Helper()
	change := func(ev engine.Event[thing]) bool { return ev.Type != engine.Bookmark && ev.Marks == 0 }
	for _, r := range records {
		i := slices.IndexFunc(r.Events, change)
		if i < 0 || !slices.ContainsFunc(r.Events[i+1:], change) {
			continue
		}
		damaged := *r
		damaged.Events = slices.Delete(slices.Clone(r.Events), i, i+1)
		damaged.Claims = nil // they count events
		return damaged
	}
	require.Fail(t, "no watch has two changes")
	return judge.Record[thing]{}
}

// judgeWrites compares what was acknowledged with what happened. It returns how many of the
// writes whose outcome is unknown were done.
func (x *killTest) judgeWrites() (unknown int) {
	x.Helper()
	x.bare.mu.Lock()
	defer x.bare.mu.Unlock()
	acked, seen := maps.Clone(x.calls.acked), map[string]bool{}
	for _, c := range x.bare.changes {
		if !strings.HasPrefix(c.value.Name, "k/") || c.value.Name == lastKey {
			continue
		}
		mark := c.value.Text
		if c.kind == engine.Deleted {
			mark = deletion(mark)
		}
		require.False(x, seen[mark], "%q was done twice", mark)
		seen[mark] = true
		if known, is := acked[c.at]; is {
			require.Equal(x, known, mark)
			delete(acked, c.at)
			continue
		}
		require.True(x, x.calls.maybe[mark], "%v was neither acknowledged nor uncertain", c)
		unknown++
	}
	require.Empty(x, acked, "acknowledged, but not seen")
	return unknown
}
