package engine_test

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

// mirrored is a backend that is read through an engine's source.
type mirrored struct {
	backend.Backend
	engine *engine.Engine[backendtest.Value]
}

func (m mirrored) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	return m.engine.Source().List(ctx, opts)
}

func (m mirrored) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	return m.engine.Source().Watch(ctx, opts)
}

func (m mirrored) StoreID(ctx context.Context) (string, error) {
	return backend.StoreID(ctx, m.engine.Source().ListerWatcher)
}

func (m mirrored) Traits() backend.Traits { return m.engine.Source().Traits() }

func (m mirrored) Close() error { return errors.Join(m.engine.Close(), m.Backend.Close()) }

func newMirrored(t testing.TB, schema store.Schema, noCache bool) backendtest.Harness {
	virtual := clock.NewVirtual(time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC))
	b, err := memory.New(schema, memory.Options{Clock: virtual, FirstRevision: 1})
	require.NoError(t, err)
	e, err := engine.New(engine.Config[backendtest.Value]{
		Key:         func(v backendtest.Value) string { return v.Key },
		SetRevision: backendtest.Value.WithRevision,
		Labels:      func(v backendtest.Value) labels.Set { return labels.Set{"text": v.Text} },
		Fields:      engine.Fields[backendtest.Value]{"key": func(v backendtest.Value) string { return v.Key }},
		Backend:     b, NoCache: noCache,
	})
	require.NoError(t, err)
	require.NoError(t, e.WaitForRevision(t.Context(), 0)) // the window begins before the first write
	return backendtest.Harness{Backend: mirrored{b, e}, Pass: virtual.Advance}
}

// The source of an engine keeps the contract of the backend beneath it, but for
// what concerns compaction: the window still has what the backend gave up.
func TestSource_Conformance(t *testing.T) {
	kept := regexp.MustCompile("^(List_ExpiredContinueOffersTheNewestState|Compact_GivesUpOlderStates|Compact_EarlierWatchesExpire|Compact_OvertakesALaggingWatch)$")
	for name, noCache := range map[string]bool{"cache": false, "without cache": true} {
		for _, check := range backendtest.Checks() {
			if !noCache && kept.MatchString(check.Name) {
				continue
			}
			t.Run(name+"/"+check.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // lists of the future wait for the cache
					h := newMirrored(t, backendtest.Schema(), noCache)
					defer func() { require.NoError(t, h.Backend.Close()) }()
					check.Run(t, h)
				})
			})
		}
	}
}

// sourced is a deterministic engine with a small window, and a watch on its
// source.
func sourced(t *testing.T, from engine.Revision) (*fixture, backend.Watcher, *int) {
	t.Helper()
	f := newFixture(t, func(_ *engine.HostConfig, cfg *engine.Config[thing]) {
		cfg.Window = engine.Window{MaxEvents: 8, ChunkSize: 2}
	})
	f.put("a")
	notified := new(int)
	w, err := f.engine.Source().Watch(t.Context(), backend.WatchOptions{From: from, Notify: func() { *notified++ }})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	return f, w, notified
}

func next(t *testing.T, w backend.Watcher) (texts []string) {
	t.Helper()
	for {
		batch, err := w.Next(100)
		require.NoError(t, err)
		if len(batch.Events) == 0 {
			return texts
		}
		for _, ev := range batch.Events {
			texts = append(texts, ev.String())
		}
	}
}

// A client that comes back after too long need not take anything to be told so.
func TestSource_WatchFromBeforeTheWindowIsRefusedAtOnce(t *testing.T) {
	f, _, _ := sourced(t, 0)
	for range 1100 {
		f.put("b")
	}
	_, err := f.engine.Source().Watch(t.Context(), backend.WatchOptions{From: 2, Notify: func() {}})
	require.ErrorIs(t, err, engine.ErrExpired)
}

func TestSource_WatchExpiresWithTheWindow(t *testing.T) {
	f, w, notified := sourced(t, 0)
	require.Empty(t, next(t, w))
	f.put("b")
	require.Equal(t, 1, *notified)
	f.put("b")
	require.Equal(t, 1, *notified, "it has not looked since")
	require.Len(t, next(t, w), 2)
	for range 1100 {
		f.put("b")
	}
	require.ErrorIs(t, drain(w), engine.ErrExpired)
}

// drain reads until there is nothing now, or the watch has ended with an error.
func drain(w backend.Watcher) error {
	for {
		batch, err := w.Next(100)
		if err != nil || len(batch.Events) == 0 {
			return err
		}
	}
}

func TestSource_ServesPastStatesFromTheWindow(t *testing.T) {
	f, _, _ := sourced(t, 0)
	rev := f.engine.Revision()
	f.put("b")
	f.fault(0, faulty.Fail(errOutage), faulty.OpList) // it must not be asked
	page, err := f.engine.Source().List(t.Context(), backend.ListOptions{Revision: rev})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	require.Equal(t, rev, page.Revision)
}

// A list and a watch say which storage they are of, so that a reader need not ask for it
// at another time.
func TestSource_TellsItsStorage(t *testing.T) {
	f := newReadFixture(t)
	src := f.Source()
	id, err := backend.StoreID(t.Context(), src.ListerWatcher)
	require.NoError(t, err)
	newest, err := src.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	past, err := src.List(t.Context(), backend.ListOptions{Revision: newest.Revision})
	require.NoError(t, err)
	w, err := src.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()
	require.Implements(t, (*backend.Identifier)(nil), w)
	watched, err := w.(backend.Identifier).StoreID(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{id, id, id}, []string{newest.StoreID, past.StoreID, watched})
}

// Revisions of different storages cannot be compared: the cache's state of the one is no
// newer than any of the other.
func TestSource_DoesNotListTheStorageBefore(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.settle()
	before := f.storage.Replace(f.newMemory())
	f.asked()
	_, err := f.Source().List(t.Context(), backend.ListOptions{})
	require.ErrorIs(t, err, engine.ErrNotReady)
	require.ErrorContains(t, err, "storage was replaced")
	require.Equal(t, "revision", f.asked(), "and no list, which would be for nothing")
	require.NoError(t, before.Close()) // which ends its watches
	f.pass(time.Minute)
	now, err := f.Source().List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, now.Items)
}

// A list of the newest state asks storage how new that is, and fails if it does not say.
func TestSource_DoesNotListWithoutKnowingTheNewestRevision(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	f.setDown(true)
	_, err := f.Source().List(t.Context(), backend.ListOptions{})
	require.ErrorIs(t, err, errDown)
}

func TestSource_OfAClosedEngine(t *testing.T) {
	e, err := engine.New(cfg())
	require.NoError(t, err)
	notified := make(chan struct{}, 100)
	w, err := e.Source().Watch(t.Context(), backend.WatchOptions{Notify: func() { notified <- struct{}{} }})
	require.NoError(t, err)
	_, err = w.Next(1)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	<-notified
	_, next := w.Next(1)
	_, list := e.Source().List(t.Context(), backend.ListOptions{})
	_, watch := e.Source().Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	for _, err := range []error{next, list, watch} {
		require.ErrorIs(t, err, engine.ErrEngineClosed)
		require.ErrorIs(t, err, store.ErrClosed)
	}
	w.Close()
	w.Close()
}

// requireBroken demands that the watch has ended with the panic of its Notify.
func requireBroken(t *testing.T, w backend.Watcher) {
	t.Helper()
	_, err := w.Next(1)
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.ErrorContains(t, err, "WatchOptions.Notify")
}

func TestSource_PanicInNotifyEndsThatWatchAlone(t *testing.T) {
	var told []error
	f := newFixture(t, func(_ *engine.HostConfig, cfg *engine.Config[thing]) {
		cfg.OnError = func(err error) { told = append(told, err) }
	})
	bad, good := f.follow("a"), f.follow("a")
	bad.then = func() { panic("no") }
	f.put("a")
	require.Empty(t, f.failures, "the cache has nothing to do with it")
	require.Equal(t, []string{"ADDED a@2"}, next(t, good))
	requireBroken(t, bad)
	require.Len(t, told, 1)
	require.ErrorIs(t, told[0], usercode.ErrPanic)
	f.put("a")
	require.Equal(t, []int{1, 2}, []int{bad.notified, good.notified})
	requireBroken(t, bad)
}

func TestSource_PanicInNotifyOfProgress(t *testing.T) {
	f := newFixture(t, nil)
	all := followKeys(f, 3)
	for _, w := range all {
		w.then = func() { panic("no") }
	}
	f.put("elsewhere")
	f.pass(100 * time.Millisecond)
	require.Equal(t, 3, notifiedOf(all), "each is notified, whichever panicked before it")
	for _, w := range all {
		requireBroken(t, w)
	}
}

func TestSource_PanicInNotifyOfTheEnd(t *testing.T) {
	f := newFixture(t, nil)
	all := followKeys(f, 3)
	for _, w := range all {
		w.then = func() { panic("no") }
	}
	require.NoError(t, f.engine.Close())
	require.Equal(t, 3, notifiedOf(all))
	require.Empty(t, f.failures)
}

// It fails the dispatcher, whose turn that was, but no other watch misses anything.
func TestSource_NotifyThatEndsItsGoroutine(t *testing.T) {
	e, ctx := newEngine(t, func(c *engine.Config[pod]) {
		c.Backoff = reflector.Backoff{Initial: time.Microsecond, Max: time.Microsecond}
	})
	follow := func(notify func()) backend.Watcher {
		w, err := e.Source().Watch(ctx, backend.WatchOptions{Prefix: "a", Notify: notify})
		require.NoError(t, err)
		t.Cleanup(w.Close)
		return w
	}
	read := func(w backend.Watcher) []store.Event {
		batch, err := w.Next(10)
		require.NoError(t, err)
		return batch.Events
	}
	more := make(chan struct{}, 1)
	bad := follow(runtime.Goexit)
	good := follow(func() {
		select {
		case more <- struct{}{}:
		default: // it has been notified already
		}
	})
	for n := range 3 {
		require.Empty(t, read(bad)) // from here on it wants to be notified
		events := read(good)
		require.Empty(t, events)
		rev, err := revisionOf(e.Put(ctx, pod{Name: "a", N: n}))
		require.NoError(t, err)
		for ; len(events) == 0; events = read(good) {
			select {
			case <-more:
			case <-ctx.Done():
				require.Fail(t, "it was not notified")
			}
		}
		require.Equal(t, rev, events[0].Revision)
		require.Equal(t, events, read(bad), "it can go on if it wants to")
	}
}

// A client cannot know that the engine will not serve again, so an informer comes back while Drain waits for others.
func TestSource_AnInformerComesBackWhileTheEngineIsDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ends := cfg(), make(chan error, 100)
		c.OnEnd = func(end engine.WatchEnd) {
			if end.Name == "informer mirror" {
				ends <- end.Err
			}
		}
		e, err := engine.New(c)
		require.NoError(t, err)
		unread, err := e.Watch(t.Context(), engine.WatchOptions{})
		require.NoError(t, err)
		mirror, err := informer.New(informer.Config[pod]{Source: e.Source(), Name: "mirror"})
		require.NoError(t, err)
		require.NoError(t, mirror.WaitSynced(t.Context()))
		last, err := revisionOf(e.Put(t.Context(), pod{Name: "a"}))
		require.NoError(t, err)
		drained := make(chan error, 1)
		go func() { drained <- e.Drain(t.Context()) }()
		for range 3 {
			require.ErrorIs(t, <-ends, engine.ErrEngineClosed)
		}
		require.Equal(t, last, mirror.Stats().Revision)
		require.Empty(t, drained, "it does not wait for the informer, but for the other watch")
		_, err = unread.Next(t.Context())
		require.NoError(t, err)
		_, err = unread.Next(t.Context())
		require.ErrorIs(t, err, engine.ErrEngineClosed)
		require.NoError(t, <-drained)
		require.NoError(t, mirror.Close())
	})
}
