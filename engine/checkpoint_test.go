package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/internal/askedwatch"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// lasting is storage that outlives the engines over it, as a file does, with
// faults.
type lasting struct {
	*faulty.Backend
	traits func(*backend.Traits)
	watch  func(backend.WatchOptions, backend.Watcher) backend.Watcher
}

func newLasting(t *testing.T) *lasting {
	m, err := memory.New(cfg().Schema(), memory.Options{FirstRevision: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return &lasting{Backend: faulty.New(m, faulty.Options{}), traits: func(*backend.Traits) {}}
}

func (l *lasting) Traits() backend.Traits {
	t := l.Backend.Traits()
	t.KeepsHistory = true
	l.traits(&t)
	return t
}

func (l *lasting) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := l.Backend.Watch(ctx, opts)
	if err != nil || l.watch == nil {
		return w, err
	}
	return l.watch(opts, w), nil
}

// open starts an engine over the storage.
func (l *lasting) open(t *testing.T) (*engine.Engine[pod], context.Context) {
	return newEngine(t, func(c *engine.Config[pod]) { c.Backend = l })
}

// story makes changes of a few pods, the last at the revision that it returns.
func (l *lasting) story(t *testing.T) (last engine.Revision) {
	ctx := t.Context()
	for n := range 20 {
		key := fmt.Sprint("p", n%3)
		prev, err := l.Get(ctx, key)
		if err != nil {
			prev = nil
		}
		if n%5 == 4 {
			gone, err := l.Remove(ctx, prev)
			require.NoError(t, err)
			last = gone.Revision
			continue
		}
		o, err := l.Put(ctx, draftOf(cfg(), pod{Name: key, N: n}), prev, backend.PutOptions{})
		require.NoError(t, err)
		last = o.Revision
	}
	return last
}

// A revision from before the engine was started is resumed from, wherever it is,
// and what comes is what happened, with the states before.
func TestWarmStart_ResumesFromBeforeTheEngine(t *testing.T) {
	l := newLasting(t)
	last := l.story(t)
	first, ctx := l.open(t)
	w, err := first.Watch(ctx, engine.WatchOptions{From: 1})
	require.NoError(t, err)
	told := until(t, ctx, w, last)
	require.Len(t, told, int(last)-1)
	require.NoError(t, first.Close())

	second, ctx := l.open(t)
	for from := engine.Revision(1); from < last; from++ {
		w, err := second.Watch(ctx, engine.WatchOptions{From: from})
		require.NoError(t, err)
		require.Equal(t, told[from-1:], until(t, ctx, w, last), "from %d", from)
		w.Stop()
	}
	page, err := second.List(ctx, engine.ListOptions{Read: engine.Exactly(5)})
	require.NoError(t, err)
	require.Len(t, page.Items, 3)
}

// What was given up is not resumed from; the rest is.
func TestWarmStart_BeginsAtTheOldestThereIs(t *testing.T) {
	l := newLasting(t)
	last := l.story(t)
	require.NoError(t, l.Compact(t.Context(), 9))
	e, ctx := l.open(t)
	require.NoError(t, e.WaitForRevision(ctx, last))
	_, err := e.Watch(ctx, engine.WatchOptions{From: 8})
	require.ErrorIs(t, err, engine.ErrExpired)
	w, err := e.Watch(ctx, engine.WatchOptions{From: 9})
	require.NoError(t, err)
	require.Len(t, until(t, ctx, w, last), int(last)-9)
}

// Before the cache is where storage was at the start it does not show the past as
// the present.
func TestWarmStart_IsNotReadyInThePast(t *testing.T) {
	l := newLasting(t)
	last := l.story(t)
	hang := l.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
	c := cfgOver(l)
	e, err := engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	ctx := t.Context()
	eventually(t, ctx, func() bool { return hang.Hits() > 0 })
	require.False(t, e.Stats().Ready)
	o, err := e.Get(ctx, "p0", engine.GetOptions{Read: engine.Cached()})
	require.NoError(t, err, "the backend answers for the cache")
	require.Greater(t, o.Revision, engine.Revision(2))

	hang.Remove()
	l.Wake()
	require.NoError(t, e.WaitForRevision(ctx, last))
	require.True(t, e.Stats().Ready)
	page, err := e.List(ctx, engine.ListOptions{Read: engine.Cached()})
	require.NoError(t, err)
	require.Equal(t, last, page.Revision)
}

// bareWatcher leaves out what its consumer has said it knows, as etcd can.
type bareWatcher struct{ backend.Watcher }

func (w bareWatcher) Next(limit int) (backend.Batch, error) {
	b, err := w.Watcher.Next(limit)
	events := make([]store.Event, 0, len(b.Events))
	for _, ev := range b.Events {
		ev.Prev = nil
		if ev.Type == store.Deleted {
			schema := cfg().Schema()
			bare := schema.New()
			bare.Key, bare.Revision = ev.Object.Key, ev.Object.Revision
			ev.Object = bare
		}
		events = append(events, ev)
	}
	b.Events = events
	return b, err
}

func TestNoPrev_CacheFillsInWhatStorageLeavesOut(t *testing.T) {
	l := newLasting(t)
	last := l.story(t)
	whole, ctx := l.open(t)
	full, err := whole.Watch(ctx, engine.WatchOptions{From: 1})
	require.NoError(t, err)
	want := statesUntil(t, ctx, full, last)

	asked := false
	l.watch = func(opts backend.WatchOptions, w backend.Watcher) backend.Watcher {
		asked = opts.NoPrev
		return bareWatcher{w}
	}
	bare, ctx := l.open(t)
	w, err := bare.Watch(ctx, engine.WatchOptions{From: 1})
	require.NoError(t, err)
	require.Equal(t, want, statesUntil(t, ctx, w, last))
	require.True(t, asked, "the cache does not ask for what it knows")
}

// statesUntil prints the events up to a revision with the values in them.
func statesUntil(t *testing.T, ctx context.Context, w *engine.Watch[pod], last engine.Revision) (seen []string) {
	for {
		events, err := w.Next(ctx)
		require.NoError(t, err)
		for _, ev := range events {
			text := fmt.Sprint(ev, " ", ev.Object.Value, ev.Object.Created)
			if ev.Prev != nil {
				text += fmt.Sprint(" was ", ev.Prev.Value, ev.Prev.Revision)
			}
			if seen = append(seen, text); ev.Revision == last {
				return seen
			}
		}
	}
}

// askedOnly returns a watch of storage whose emitted values are others' changes.
func askedOnly(opts backend.WatchOptions, w backend.Watcher) backend.Watcher {
	return askedwatch.New(withoutEmitted{w}, opts, new(atomic.Int32))
}

// withoutEmitted is a watch without emitted values, and without the state.
type withoutEmitted struct{ backend.Watcher }

func (w withoutEmitted) Next(limit int) (backend.Batch, error) {
	b, err := w.Watcher.Next(limit)
	b.State = nil
	var kept []store.Event
	for _, ev := range b.Events {
		if ev.Type != store.Emitted {
			kept = append(kept, ev)
		}
	}
	b.Events = kept
	return b, err
}

// A read that waits for a revision which is not an event of the watch has storage asked
// for it, and does not wait until something happens.
func TestFreshness_AsksStorageHowFarItIs(t *testing.T) {
	l := newLasting(t)
	l.traits = func(t *backend.Traits) { t.Contiguous, t.Shared, t.Blocks = false, true, true }
	l.watch = askedOnly
	e, ctx := l.open(t)
	mine, err := e.Create(ctx, pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, e.WaitForRevision(ctx, mine.Revision))
	other, err := l.Emit(ctx, draftOf(cfg(), pod{Name: "other"}))
	require.NoError(t, err)
	page, err := e.List(ctx, engine.ListOptions{Read: engine.NotOlderThan(other.Revision)})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
}

func TestCheckpoint_GoesOnInAnotherEngine(t *testing.T) {
	l := newLasting(t)
	last := l.story(t)
	first, ctx := l.open(t)
	saved, err := first.Checkpoint(ctx, 7)
	require.NoError(t, err)
	text, err := json.Marshal(map[string]engine.Checkpoint{"watch": saved})
	require.NoError(t, err)
	require.NoError(t, first.Close())

	var loaded map[string]engine.Checkpoint
	require.NoError(t, json.Unmarshal(text, &loaded))
	require.Equal(t, saved, loaded["watch"])
	second, ctx := l.open(t)
	from, err := second.RevisionOf(ctx, loaded["watch"])
	require.NoError(t, err)
	w, err := second.Watch(ctx, engine.WatchOptions{From: from})
	require.NoError(t, err)
	require.Len(t, until(t, ctx, w, last), int(last)-7)
}

// A consumer that ends before its first event misses nothing if it has saved where it began.
func TestCheckpoint_OfAWatchThatHasHadNoEventMissesNothing(t *testing.T) {
	l := newLasting(t)
	begun := l.story(t)
	first, ctx := l.open(t)
	w, err := first.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	saved, err := first.Checkpoint(ctx, w.Revision())
	require.NoError(t, err)
	require.NoError(t, first.Close())

	last := l.story(t)
	second, ctx := l.open(t)
	from, err := second.RevisionOf(ctx, saved)
	require.NoError(t, err)
	again, err := second.Watch(ctx, engine.WatchOptions{From: from})
	require.NoError(t, err)
	require.Len(t, until(t, ctx, again, last), int(last-begun))
}

// A consumer that ends in the middle of the initial state starts over. What it has saved
// until then does not keep it from that.
func TestCheckpoint_InTheMiddleOfTheInitialStateStartsOver(t *testing.T) {
	l := newLasting(t)
	l.story(t)
	first, ctx := l.open(t)
	w, err := first.Watch(ctx, engine.WatchOptions{InitialState: true})
	require.NoError(t, err)
	for _, err := range w.Events() {
		require.NoError(t, err)
		break
	}
	require.Zero(t, w.Revision())
	saved, err := first.Checkpoint(ctx, w.Revision())
	require.NoError(t, err)
	require.NoError(t, first.Close())

	loaded, err := engine.ParseCheckpoint(saved.String())
	require.NoError(t, err)
	second, ctx := l.open(t)
	from, err := second.RevisionOf(ctx, loaded)
	require.NoError(t, err)
	require.Zero(t, from)
}

func TestCheckpoint_OfAnotherStorageIsRefused(t *testing.T) {
	l, other := newLasting(t), newLasting(t)
	l.story(t)
	other.story(t)
	first, ctx := l.open(t)
	saved, err := first.Checkpoint(ctx, 7)
	require.NoError(t, err)
	second, ctx := other.open(t)
	_, err = second.RevisionOf(ctx, saved)
	require.ErrorIs(t, err, engine.ErrForeignCheckpoint)
	require.ErrorIs(t, err, engine.ErrExpired, "what to do is the same")
	require.ErrorContains(t, err, saved.Store)
	here, err := second.Checkpoint(ctx, 7)
	require.NoError(t, err)
	var foreign *engine.CheckpointError
	_, err = second.RevisionOf(ctx, saved)
	require.ErrorAs(t, err, &foreign)
	require.Equal(t, here.Store, foreign.Store)
	from, err := second.RevisionOf(ctx, engine.Checkpoint{})
	require.NoError(t, err)
	require.Zero(t, from, "none is from now on")
}

// A consumer that makes its checkpoints from the timeline, as it should, begins with a list in the next process if
// storage has no identity, as the API server of Kubernetes has none. What it has saved must not keep it from starting.
func TestCheckpoint_OfStorageWithoutAnIdentityIsNone(t *testing.T) {
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.Backend = nameless{c.Backend} })
	f.put("a")
	timeline, err := f.engine.Timeline(t.Context())
	require.NoError(t, err)
	require.Empty(t, timeline.Store())
	saved := engine.Checkpoint{Store: timeline.Store(), Revision: 2}.String()
	loaded, err := engine.ParseCheckpoint(saved)
	require.NoError(t, err)
	from, err := f.engine.RevisionOf(t.Context(), loaded)
	require.NoError(t, err)
	require.Zero(t, from)
}

func TestCheckpoint_AsText(t *testing.T) {
	for _, c := range []engine.Checkpoint{{}, {Store: "bolt:a@b.1/pods", Revision: 1}, {Store: "x", Revision: 1<<64 - 1}} {
		parsed, err := engine.ParseCheckpoint(c.String())
		require.NoError(t, err)
		require.Equal(t, c, parsed)
		parsed, err = engine.ParseCheckpoint(c.String() + "\n")
		require.NoError(t, err)
		require.Equal(t, c, parsed, "a line of a file")
	}
	for _, text := range []string{"\n\n", "7@\n", "7", "@x", "0@x", "7@", "-1@x", "+1@x", "18446744073709551616@x", "x@7"} {
		_, err := engine.ParseCheckpoint(text)
		require.ErrorIs(t, err, engine.ErrConfig, text)
		require.Error(t, new(engine.Checkpoint).UnmarshalText([]byte(text)), text)
	}
}

// Storage that keeps history makes the window keep it, by number and bytes and not
// by age, unless the configuration says otherwise.
func TestWarmStart_WindowKeepsWhatStorageKeeps(t *testing.T) {
	l := newLasting(t)
	last := l.story(t)
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Backend, c.Window = l, engine.Window{MaxEvents: 8} })
	require.NoError(t, e.WaitForRevision(ctx, last))
	_, err := e.Watch(ctx, engine.WatchOptions{From: 1})
	require.ErrorIs(t, err, engine.ErrExpired, "MaxEvents bounds it")
	w, err := e.Watch(ctx, engine.WatchOptions{From: last - 5})
	require.NoError(t, err)
	require.Len(t, until(t, ctx, w, last), 5)
}

// A checkpoint names the storage whose state the cache has, even while that was replaced and the
// cache has not noticed: the revisions are of what it shows.
func TestCheckpoint_IsOfTheStorageThatTheCacheHas(t *testing.T) {
	f := newReadFixture(t)
	rev := f.put("a", "web", 1)
	first, err := f.Checkpoint(t.Context(), rev)
	require.NoError(t, err)
	old := f.storage.Replace(f.newMemory())
	again, err := f.Checkpoint(t.Context(), rev)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.NoError(t, old.Close())
	f.notice()
	_, err = f.RevisionOf(t.Context(), first)
	require.ErrorIs(t, err, engine.ErrForeignCheckpoint)
}
