package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/window"
)

// share watches with the state, as a cache does.
func (f *fixture) share(from store.Revision) backend.Watcher {
	f.Helper()
	w, err := f.Watch(f.ctx, backend.WatchOptions{From: from, Notify: nothing, State: true})
	require.NoError(f, err)
	return w
}

func TestShare_ListGivesTheStateItself(t *testing.T) {
	f := newFixture(t, memory.Options{Indexes: []store.Attribute{store.LabelAttribute("room")}})
	draft := newLamp("hall", false)
	draft.Labels = store.LabelsOf(labels.Set{"room": "hall"})
	hall, err := f.Put(f.ctx, draft, nil, backend.PutOptions{})
	require.NoError(t, err)
	list, err := f.List(f.ctx, backend.ListOptions{State: true})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	require.Same(t, hall, list.State.Get("hall"))
	require.True(t, list.State.Indexed(store.LabelAttribute("room")))
	f.put("attic", nil, backend.PutOptions{})
	require.Equal(t, 1, list.State.Len(), "what is written later does not show")
}

func TestShare_BatchReachesTheNewestStateAcrossChunks(t *testing.T) {
	f := newFixture(t, memory.Options{})
	w := f.share(1)
	f.flicker("hall", 700)
	batch, err := w.Next(1000)
	require.NoError(t, err)
	require.Len(t, batch.Events, 700)
	require.Same(t, batch.Events[699].Object, batch.State.Get("hall"))
	require.Equal(t, batch.Events[699].Revision, batch.Through)

	f.flicker("hall", 700)
	for n := range 7 {
		batch, err = w.Next(100)
		require.NoError(t, err)
		require.Len(t, batch.Events, 100)
		require.Equal(t, n == 6, batch.State != nil, "the state comes with the newest events alone")
	}
	batch, err = w.Next(100)
	require.NoError(t, err)
	require.Empty(t, batch.Events)
	require.Nil(t, batch.State, "there is nothing new")
}

func TestShare_EmittedEventsAreNotCopied(t *testing.T) {
	f := newFixture(t, memory.Options{})
	w := f.share(1)
	f.flicker("hall", 1)
	require.Len(t, f.read(w), 1)
	const each = 700 // events, of several chunks
	for range 2 * each {
		_, err := f.Emit(f.ctx, newLamp("hall", true))
		require.NoError(t, err)
	}
	// AllocsPerRun calls its function twice, and counts the second call. The assertions of
	// require allocate.
	require.Zero(t, testing.AllocsPerRun(1, func() {
		for read := 0; read < each; {
			batch, err := w.Next(each - read)
			if err != nil || len(batch.Events) == 0 {
				t.Fatalf("%d of %d events, then %v", read, each, err)
			}
			read += len(batch.Events)
		}
	}))
	require.Empty(t, f.read(w))
}

func TestShare_StateIsLeftOutForAsManyEventsAsTheConsumerApplies(t *testing.T) {
	f := newFixture(t, memory.Options{})
	w, err := f.Watch(f.ctx, backend.WatchOptions{From: 1, Notify: nothing, State: true, StateEvery: 3})
	require.NoError(t, err)
	for n := range 8 {
		f.flicker("hall", 1)
		batch, err := w.Next(10)
		require.NoError(t, err)
		require.Len(t, batch.Events, 1)
		require.Equal(t, n%4 == 3, batch.State != nil, "event %d", n)
	}
	f.flicker("hall", 4)
	batch, err := w.Next(10)
	require.NoError(t, err)
	require.Same(t, batch.Events[3].Object, batch.State.Get("hall"))
}

func TestShare_WatchOfAPrefixIsLikeAnyOther(t *testing.T) {
	f := newFixture(t, memory.Options{})
	w, err := f.Watch(f.ctx, backend.WatchOptions{From: 1, Prefix: "hall", Notify: nothing, State: true})
	require.NoError(t, err)
	f.put("attic", nil, backend.PutOptions{})
	f.put("hall", nil, backend.PutOptions{})
	batch, err := w.Next(10)
	require.NoError(t, err)
	require.Len(t, batch.Events, 1)
	require.Nil(t, batch.State)
}

// What a cache has not taken over stays, beyond the limits: it is the only copy.
func TestShare_WhatIsNotReadYetStays(t *testing.T) {
	f := newFixture(t, memory.Options{Retain: window.Limits{MaxEvents: 100, MinAge: time.Second}})
	w := f.share(1)
	f.flicker("hall", 10_000)
	f.clock.Advance(time.Hour)
	require.Equal(t, 10_000, f.History().Len())
	for range 9 {
		_, err := w.Next(1000)
		require.NoError(t, err)
	}
	f.flicker("hall", 1)
	require.InDelta(t, 1001, f.History().Len(), 256, "what was read goes by chunks")
	require.Len(t, f.read(w), 1001)
	f.flicker("hall", 1)
	require.LessOrEqual(t, f.History().Len(), 256)

	f.flicker("hall", 10_000)
	w.Close()
	f.flicker("hall", 1)
	require.LessOrEqual(t, f.History().Len(), 256, "a watch that is closed holds nothing")
}

func TestShare_WhatIsNotReadYetIsBounded(t *testing.T) {
	schema := lamps
	schema.Size = func(*store.Object) int { return 1 << 20 }
	f := newFixtureOf(t, schema, memory.Options{Retain: window.Limits{MaxEvents: 100}})
	w := f.share(1)
	f.flicker("hall", 500)
	require.LessOrEqual(t, f.History().Bytes(), int64(window.DefaultMaxBytes+window.DefaultMaxBytes/8))
	_, err := w.Next(1)
	require.ErrorIs(t, err, store.ErrExpired)
}

func TestShare_CompactionAndCloseEndIt(t *testing.T) {
	f := newFixture(t, memory.Options{})
	w := f.share(1)
	last := f.flicker("hall", 10)
	require.NoError(t, f.Compact(f.ctx, last.Revision))
	_, err := w.Next(1)
	require.ErrorIs(t, err, store.ErrExpired)
	w = f.share(last.Revision)
	require.NoError(t, f.Close())
	_, err = w.Next(1)
	require.ErrorIs(t, err, store.ErrClosed)
	require.Zero(t, f.History().Len())
	w.Close()
}

// A notification is due after an empty batch here, too.
func TestShare_IsNotifiedOnTheEdge(t *testing.T) {
	f := newFixture(t, memory.Options{})
	calls := 0
	w, err := f.Watch(f.ctx, backend.WatchOptions{From: 1, Notify: func() { calls++ }, State: true})
	require.NoError(t, err)
	for n := range 5 {
		require.Len(t, f.read(w), min(n, 1)*3)
		f.flicker(fmt.Sprint("lamp-", n), 3)
		require.Equal(t, n+1, calls)
	}
}

// History that waits for a slow cache goes when the cache has read it, even if nothing more is
// written.
func TestShare_WhatASlowWatchHasReadIsDropped(t *testing.T) {
	f := newFixture(t, little)
	w := f.share(1)
	f.flicker("hall", 1000)
	f.clock.Advance(10 * time.Second)
	require.Equal(t, 1000, f.History().Len(), "it has not read them")
	require.Len(t, f.read(w), 1000)
	f.clock.Advance(2 * time.Second)
	require.Zero(t, f.History().Len())
	f.clock.Advance(2 * time.Second)
	require.Zero(t, f.clock.Pending(), "and the timer rests")
	w.Close()
}
