package objectcache_test

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// state is what the model knows of a referenced key.
type state uint8

const (
	arriving state = iota // its Reflector has not reached the source
	followed
	kept // immutable, and not followed
	idle
)

// keyModel is one key as it should be.
type keyModel struct {
	refs  []*objectcache.Ref[secret]
	state state
	since time.Time // when it began to arrive
	used  time.Time // when it was last read, or arrived
	seen  *secret   // what is served; nil if there is nothing
}

// world is a cache and what should be true of it.
type world struct {
	*rig
	keys    map[string]*keyModel // those with references
	objects map[string]secret    // at the source
	down    bool                 // the source refuses lists
	refs    int
	needed  int // keys that need a Reflector
	read    int // reads that were answered
}

func newWorld(t tester, seed uint64) *world {
	return &world{rig: newRig(t, seed), keys: map[string]*keyModel{}, objects: map[string]secret{}}
}

// set moves a key to another state, and counts those that need a Reflector.
func (w *world) set(k *keyModel, s state) {
	w.needed += need(s) - need(k.state)
	k.state = s
}

func need(s state) int {
	if s == arriving || s == followed {
		return 1
	}
	return 0
}

// arrive is what a list brings.
func (w *world) arrive(k *keyModel, key string, at time.Time) {
	k.used = at
	w.set(k, followed)
	w.see(k, key)
}

// see is what a list or a watch brings: the newest state.
func (w *world) see(k *keyModel, key string) {
	k.seen = nil
	if o, ok := w.objects[key]; ok {
		k.seen = &o
		if o.Immutable {
			w.set(k, kept)
		}
	}
}

// begin is the start of a Reflector.
func (w *world) begin(k *keyModel, key string) {
	k.since = w.clock.Now()
	w.set(k, arriving)
	if !w.down {
		w.arrive(k, key, k.since)
	}
}

func (w *world) take(key string) {
	w.t.Helper()
	ref := w.acquire(key)
	w.settle()
	k := w.keys[key]
	if k == nil {
		k = &keyModel{}
		w.needed += need(k.state)
		w.keys[key] = k
		w.begin(k, key)
	}
	k.refs = append(k.refs, ref)
	w.refs++
}

// drop releases the key's n-th reference, again and again.
func (w *world) drop(key string, n int) {
	w.t.Helper()
	k := w.keys[key]
	ref := k.refs[n]
	for range 3 {
		ref.Release()
	}
	w.settle()
	w.requireErr(ref, objectcache.ErrReleased)
	k.refs = append(k.refs[:n:n], k.refs[n+1:]...)
	w.refs--
	if len(k.refs) == 0 {
		w.needed -= need(k.state)
		delete(w.keys, key)
	}
}

// churn releases all references of a key and takes one before the cache has had
// a turn: so nothing has happened.
func (w *world) churn(key string) {
	w.t.Helper()
	k := w.keys[key]
	for _, ref := range k.refs {
		ref.Release()
	}
	w.refs -= len(k.refs) - 1
	k.refs = append(k.refs[:0:0], w.acquire(key))
	w.settle()
	if k.state == idle {
		w.begin(k, key) // it is a first reference
	}
}

func (w *world) get(key string, n int) {
	w.t.Helper()
	k := w.keys[key]
	if k.state == idle {
		w.begin(k, key)
	}
	if k.state != kept {
		k.used = w.clock.Now()
	}
	ref := k.refs[n]
	o, err := ref.Get(context.Background())
	switch {
	case k.state == arriving:
		require.ErrorIs(w.t, err, objectcache.ErrNotSynced)
		require.ErrorIs(w.t, err, engine.ErrIdle)
		require.ErrorIs(w.t, err, enginetest.ErrInjected)
		return
	case k.seen == nil:
		require.ErrorIs(w.t, err, objectcache.ErrNotFound)
	default:
		require.NoError(w.t, err)
		require.Equal(w.t, *k.seen, o.Value)
	}
	w.read++
}

func (w *world) write(s secret) {
	w.t.Helper()
	w.put(s)
	w.objects[s.Name] = s
	w.changed(s.Name)
}

func (w *world) remove(key string) {
	w.t.Helper()
	if _, ok := w.objects[key]; !ok {
		return
	}
	w.delete(key)
	delete(w.objects, key)
	w.changed(key)
}

// changed is what a watch brings.
func (w *world) changed(key string) {
	if k := w.keys[key]; k != nil && k.state == followed {
		w.see(k, key)
	}
}

// pass lets time pass: what was not read for long enough becomes idle.
func (w *world) pass(d time.Duration) {
	w.advance(d)
	for _, k := range w.keys {
		if k.state == followed && w.clock.Now().Sub(k.used) >= maxIdle {
			w.set(k, idle)
		}
	}
}

// fail takes the source away from those who list. Who watches, goes on.
func (w *world) fail() {
	w.down = true
	w.source.FailList(1<<30, nil)
}

// recover gives it back: whoever has been refused comes back within the time
// between two attempts.
func (w *world) recover() {
	w.down = false
	w.source.FailList(0, nil)
	now := w.clock.Now()
	for key, k := range w.keys {
		if k.state == arriving {
			waited := now.Sub(k.since)/retry + 1
			w.arrive(k, key, k.since.Add(waited*retry))
		}
	}
	w.pass(retry)
}

// check holds the cache against the model.
func (w *world) check() {
	w.t.Helper()
	require.Equal(w.t, w.needed, w.host.Actors()-1, "Reflectors running, and keys that need one")
}

// checkKeys looks at each key.
func (w *world) checkKeys() {
	w.t.Helper()
	want := objectcache.Stats{References: w.refs, Keys: len(w.keys), Reflectors: w.needed}
	var watched []string
	for key, k := range w.keys {
		switch k.state {
		case followed:
			want.Synced++
			watched = append(watched, key)
		case kept:
			want.Synced++
			want.Frozen++
		case idle:
			want.Idle++
		}
	}
	got := w.cache.Stats()
	got.Starts = 0
	require.Equal(w.t, want, got)
	slices.Sort(watched)
	require.Equal(w.t, watched, w.source.watched())
	require.LessOrEqual(w.t, w.source.mostAtOnce(), 1)
}
