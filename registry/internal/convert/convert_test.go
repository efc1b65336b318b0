package convert_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/registry/internal/convert"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/memory"
)

var schema = backendtest.Schema()

// withText returns an object with another text, or o itself if it has that.
func withText(o *store.Object, text string) *store.Object {
	if store.As[backendtest.Item](o).Value.Text == text {
		return o
	}
	c := schema.Clone(o)
	store.As[backendtest.Item](c).Value.Text = text
	schema.Describe(c)
	return c
}

// textOf returns the text of an object.
func textOf(o *store.Object) string { return store.As[backendtest.Item](o).Value.Text }

// marking has each text marked in storage.
var marking = convert.Conversion{
	ToStorage: func(o *store.Object) (*store.Object, error) { return withText(o, "stored "+textOf(o)), nil },
	FromStorage: func(o *store.Object) (*store.Object, error) {
		return withText(o, strings.TrimPrefix(textOf(o), "stored ")), nil
	},
}

// incomplete is a text that is completed.
const incomplete = "?"

// completing completes a text, in what is stored and in what was stored before.
var completing = convert.Conversion{ToStorage: complete, FromStorage: complete}

func complete(o *store.Object) (*store.Object, error) {
	if textOf(o) == incomplete {
		return withText(o, "default"), nil
	}
	return o, nil
}

// newBackends returns storage, and what shows it by a conversion.
func newBackends(t testing.TB, by convert.Conversion) (storage *memory.Backend, shown *convert.Backend) {
	t.Helper()
	storage, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	return storage, convert.New(storage, &schema, by)
}

// put stores a text under a key, in place of prev.
func put(t testing.TB, b backend.Backend, key, text string, prev *store.Object) *store.Object {
	t.Helper()
	o, err := b.Put(t.Context(), backendtest.Draft(backendtest.Value{Key: key, Text: text}), prev, backend.PutOptions{})
	require.NoError(t, err)
	return o
}

func TestBackend_KeepsTheContract(t *testing.T) {
	for name, by := range map[string]convert.Conversion{"all differ": marking, "none differs": completing} {
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, func(t testing.TB, schema store.Schema) backendtest.Harness {
				virtual := clock.NewVirtual(time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC))
				m, err := memory.New(schema, memory.Options{Clock: virtual})
				require.NoError(t, err)
				return backendtest.Harness{Backend: convert.New(m, &schema, by).Emitting(), Pass: virtual.Advance}
			})
		})
	}
}

func TestBackend_StoresTheFormOfStorage(t *testing.T) {
	storage, shown := newBackends(t, marking)
	require.Equal(t, "a", textOf(put(t, shown, "k", "a", nil)))
	o, err := storage.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "stored a", textOf(o))
	o, err = shown.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "a", textOf(o))
	text, _ := o.Labels.Lookup("text")
	require.Equal(t, "a", text, "selectors see what is shown")
	page, err := shown.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "a", textOf(page.Items[0]))
}

// What is emitted has the form of storage there, and is shown in the other.
func TestBackend_EmitsIfStorageDoes(t *testing.T) {
	storage, shown := newBackends(t, marking)
	emitter, ok := shown.Emitting().(backend.Emitter)
	require.True(t, ok)
	var watches []backend.Watcher
	for _, b := range []backend.Backend{storage, shown} {
		w, err := b.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
		require.NoError(t, err)
		defer w.Close()
		watches = append(watches, w)
	}
	o, err := emitter.Emit(t.Context(), backendtest.Draft(backendtest.Value{Key: "k", Text: "a"}))
	require.NoError(t, err)
	require.Equal(t, "a", textOf(o))
	for i, want := range []string{"stored a", "a"} {
		batch, err := watches[i].Next(10)
		require.NoError(t, err)
		require.Len(t, batch.Events, 1)
		require.Equal(t, store.Emitted, batch.Events[0].Type)
		require.Equal(t, want, textOf(batch.Events[0].Object))
	}
	silent := convert.New(struct{ backend.Backend }{storage}, &schema, marking)
	require.NotImplements(t, (*backend.Emitter)(nil), silent.Emitting())
}

// knowing is storage whose watches know what they are of, and tell their progress on request.
type knowing struct{ backend.Backend }

func (b knowing) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.Backend.Watch(ctx, opts)
	return knowingWatcher{w}, err
}

type knowingWatcher struct{ backend.Watcher }

func (knowingWatcher) StoreID(context.Context) (string, error) { return "old", nil }

func (knowingWatcher) RequestProgress(context.Context) error { return errRequested }

var errRequested = errors.New("it was requested")

// A watch is of a storage, and can be asked for progress, if the one beneath is and can.
func TestWatch_PassesOnWhatTheWatchBeneathKnows(t *testing.T) {
	storage, shown := newBackends(t, completing)
	w, err := shown.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()
	require.NotImplements(t, (*backend.Identifier)(nil), w)
	require.ErrorIs(t, backend.RequestProgress(t.Context(), w), store.ErrUnsupported)

	known := convert.New(knowing{storage}, &schema, completing)
	w, err = known.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()
	require.Implements(t, (*backend.Identifier)(nil), w)
	id, err := w.(backend.Identifier).StoreID(t.Context())
	require.NoError(t, err)
	require.Equal(t, "old", id)
	require.ErrorIs(t, backend.RequestProgress(t.Context(), w), errRequested)
}

// sharing is storage whose watches share their events, and return them again and again.
type sharing struct {
	backend.Backend
	events []store.Event
}

func (b sharing) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := b.Backend.Watch(ctx, opts)
	return sharingWatcher{w, b.events}, err
}

type sharingWatcher struct {
	backend.Watcher
	events []store.Event
}

func (w sharingWatcher) Next(int) (backend.Batch, error) { return backend.Batch{Events: w.events}, nil }

func TestWatch_LeavesTheEventsOfStorageAlone(t *testing.T) {
	storage, _ := newBackends(t, marking)
	o := put(t, storage, "k", "stored a", nil)
	events := []store.Event{{Type: store.Added, Object: o}, {Type: store.Modified, Object: o, Prev: o}}
	shown := convert.New(sharing{storage, events}, &schema, marking)
	for range 2 {
		w, err := shown.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
		require.NoError(t, err)
		defer w.Close()
		batch, err := w.Next(10)
		require.NoError(t, err)
		require.Len(t, batch.Events, 2)
		require.Equal(t, "a", textOf(batch.Events[1].Prev))
	}
	require.Equal(t, []store.Event{{Type: store.Added, Object: o}, {Type: store.Modified, Object: o, Prev: o}}, events)
	require.Equal(t, "stored a", textOf(o))
}

// What a write meets in its way, and what a deletion returns, is as it is shown.
func TestBackend_ShowsConflictsAndLastStates(t *testing.T) {
	_, shown := newBackends(t, marking)
	first := put(t, shown, "k", "a", nil)
	second := put(t, shown, "k", "b", first)
	_, err := shown.Put(t.Context(), backendtest.Draft(backendtest.Value{Key: "k", Text: "c"}), first, backend.PutOptions{})
	require.ErrorIs(t, err, store.ErrConflict)
	conflict, is := errors.AsType[*backend.ConflictError](err)
	require.True(t, is)
	require.Equal(t, "b", textOf(conflict.Current))
	_, err = shown.Remove(t.Context(), first)
	require.ErrorIs(t, err, store.ErrConflict)
	gone, err := shown.Remove(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, "b", textOf(gone))
	require.Greater(t, gone.Revision, second.Revision)
}

// state lists with a request for the state.
func state(t testing.TB, b backend.Backend) *backend.List {
	t.Helper()
	page, err := b.List(t.Context(), backend.ListOptions{State: true})
	require.NoError(t, err)
	return page
}

func TestBackend_SharesTheStateUntilAnObjectDiffers(t *testing.T) {
	storage, shown := newBackends(t, completing)
	put(t, shown, "a", "text", nil)
	put(t, shown, "b", incomplete, nil)
	page := state(t, shown)
	require.NotNil(t, page.State, "writes complete what they store")
	require.Equal(t, "default", textOf(page.State.Get("b")))
	w, err := shown.Watch(t.Context(), backend.WatchOptions{From: page.Revision, State: true, Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()
	put(t, shown, "c", incomplete, nil)
	batch, err := w.Next(10)
	require.NoError(t, err)
	require.NotNil(t, batch.State)

	odd := put(t, storage, "d", incomplete, nil) // by another writer
	batch, err = w.Next(10)
	require.NoError(t, err)
	require.Nil(t, batch.State, "it has d in another form")
	require.Equal(t, "default", textOf(batch.Events[0].Object))
	put(t, shown, "e", incomplete, nil)
	batch, err = w.Next(10)
	require.NoError(t, err)
	require.Nil(t, batch.State)
	page = state(t, shown)
	require.Nil(t, page.State)
	require.Len(t, page.Items, 5)
	require.Equal(t, "default", textOf(page.Items[3]))

	put(t, shown, "d", incomplete, odd)
	batch, err = w.Next(10)
	require.NoError(t, err)
	require.Equal(t, "default", textOf(batch.Events[0].Prev))
	require.NotNil(t, state(t, shown).State, "all objects have the form again")
}

// An object that looks the same is still to be stored if storage has it in another form.
func TestHas_ComparesWhatIsStored(t *testing.T) {
	storage, shown := newBackends(t, completing)
	put(t, storage, "k", incomplete, nil)
	now, err := shown.Get(t.Context(), "k")
	require.NoError(t, err)
	has := func(text string) bool {
		t.Helper()
		has, err := shown.Has(t.Context(), backendtest.Draft(backendtest.Value{Key: "k", Text: text}), now)
		require.NoError(t, err)
		return has
	}
	require.False(t, has("other"))
	require.False(t, has("default"), "storage has it as it was")
	now = put(t, shown, "k", "default", now)
	require.True(t, has("default"))
	require.True(t, has(incomplete), "which is completed")
	put(t, shown, "k", "default", now)
	require.False(t, has("default"), "another write came first")
	gone := put(t, shown, "k2", "default", nil)
	_, err = shown.Remove(t.Context(), gone)
	require.NoError(t, err)
	there, err := shown.Has(t.Context(), backendtest.Draft(backendtest.Value{Key: "k2", Text: "default"}), gone)
	require.NoError(t, err)
	require.False(t, there)
}

// A read of storage does not convert what the cache has converted.
func TestGet_ReturnsTheObjectOfTheCache(t *testing.T) {
	_, shown := newBackends(t, marking)
	first := put(t, shown, "k", "a", nil)
	cached := first
	shown.ReadFrom(func(key string) *store.Object { return map[string]*store.Object{"k": cached}[key] })
	get := func() *store.Object {
		o, err := shown.Get(t.Context(), "k")
		require.NoError(t, err)
		return o
	}
	require.Same(t, first, get())
	second := put(t, shown, "k", "b", first)
	require.Equal(t, "b", textOf(get()), "the cache is behind")
	cached = second
	require.Same(t, second, get())
	for _, differ := range []func(*store.Object){
		func(o *store.Object) { o.Created++ },
		func(o *store.Object) { o.Written = o.Written.Add(time.Second) },
	} {
		cached = withText(second, "of storage that was replaced")
		differ(cached)
		require.Equal(t, "b", textOf(get()), "another state has that revision there")
	}
	cached = nil
	require.Equal(t, "b", textOf(get()))
}

func TestRoundTrip_IsAStoreAndARead(t *testing.T) {
	_, shown := newBackends(t, completing)
	o, err := shown.RoundTrip(backendtest.Draft(backendtest.Value{Key: "k", Text: incomplete}))
	require.NoError(t, err)
	require.Equal(t, "default", textOf(o))
}

var errConversion = errors.New("it cannot be converted")

// What cannot be converted fails the read or the watch, and not the storage. What was written stays
// written.
func TestBackend_WhoseConversionFails(t *testing.T) {
	fails := false
	convertOrFail := func(o *store.Object) (*store.Object, error) {
		if fails {
			return nil, errConversion
		}
		return complete(o)
	}
	storage, shown := newBackends(t, convert.Conversion{ToStorage: complete, FromStorage: convertOrFail})
	w, err := shown.Watch(t.Context(), backend.WatchOptions{From: state(t, shown).Revision, Notify: func() {}})
	require.NoError(t, err)
	defer w.Close()
	fails = true
	o := put(t, shown, "k", "a", nil)
	_, err = shown.Get(t.Context(), "k")
	require.ErrorIs(t, err, errConversion)
	for _, opts := range []backend.ListOptions{{}, {State: true}} {
		_, err = shown.List(t.Context(), opts)
		require.ErrorIs(t, err, errConversion)
	}
	_, err = w.Next(1)
	require.ErrorIs(t, err, errConversion)
	_, err = shown.Has(t.Context(), o, o)
	require.ErrorIs(t, err, errConversion)
	_, err = shown.RoundTrip(o)
	require.ErrorIs(t, err, errConversion)
	_, err = shown.Put(t.Context(), backendtest.Draft(backendtest.Value{Key: "k", Text: incomplete}), nil, backend.PutOptions{})
	require.ErrorIs(t, err, errConversion, "the conflict has an object")
	gone, err := shown.Remove(t.Context(), o)
	require.NoError(t, err)
	require.Greater(t, gone.Revision, o.Revision, "it was deleted, whatever it was")

	_, broken := newBackends(t, convert.Conversion{ToStorage: convertOrFail, FromStorage: complete})
	_, err = broken.Put(t.Context(), o, nil, backend.PutOptions{})
	require.ErrorIs(t, err, errConversion)
	_, err = broken.Has(t.Context(), o, o)
	require.ErrorIs(t, err, errConversion)
	_, err = broken.RoundTrip(o)
	require.ErrorIs(t, err, errConversion)
	_, err = storage.Get(t.Context(), "k")
	require.ErrorIs(t, err, store.ErrNotFound)
}
