package objectcache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// TestProperty_ReflectorsRunningAreKeysThatNeedOne tries any sequence of
// everything that can happen. After each step there is a Reflector for exactly
// those keys that are referenced and neither immutable nor idle.
func TestProperty_ReflectorsRunningAreKeysThatNeedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(t, "seed"))
		defer w.close()
		anyKey := rapid.SampledFrom([]string{"a", "b", "a/below", "c", "d"})
		held := func(t *rapid.T) (key string, n int) {
			var keys []string
			for _, key := range []string{"a", "b", "a/below", "c", "d"} {
				if w.keys[key] != nil {
					keys = append(keys, key)
				}
			}
			if len(keys) == 0 {
				t.Skip("nothing is referenced")
			}
			key = rapid.SampledFrom(keys).Draw(t, "key")
			return key, rapid.IntRange(0, len(w.keys[key].refs)-1).Draw(t, "reference")
		}
		w.t = t
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) { w.take(anyKey.Draw(t, "key")) },
			"release": func(t *rapid.T) { w.drop(held(t)) },
			"churn":   func(t *rapid.T) { key, _ := held(t); w.churn(key) },
			"get":     func(t *rapid.T) { w.get(held(t)) },
			"write": func(t *rapid.T) {
				w.write(secret{anyKey.Draw(t, "key"), rapid.StringMatching("[a-z]{0,3}").Draw(t, "data"), rapid.Bool().Draw(t, "immutable")})
			},
			"remove":  func(t *rapid.T) { w.remove(anyKey.Draw(t, "key")) },
			"pass":    func(t *rapid.T) { w.pass(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second) },
			"fail":    func(*rapid.T) { w.fail() },
			"recover": func(*rapid.T) { w.recover() },
			"": func(*rapid.T) {
				w.check()
				w.checkKeys()
			},
		})
	})
}

// TestProperty_TenThousandReferencesOverAThousandKeys does the same at the size
// of a busy node.
func TestProperty_TenThousandReferencesOverAThousandKeys(t *testing.T) {
	const keys, references = 1000, 10_000
	w := newWorld(t, 1)
	defer w.close()
	random := rand.New(rand.NewPCG(1, 0))
	key := func() string { return fmt.Sprintf("ns-%d/secret", random.IntN(keys)) }
	for n := range keys / 2 { // of the others there is no object, yet
		w.write(secret{Name: fmt.Sprintf("ns-%d/secret", n), Immutable: n%10 == 0})
	}
	for taken, step := 0, 0; taken < references; step++ {
		switch k, chance := key(), random.IntN(1000); {
		case chance < 400:
			w.take(k)
			taken++
		case w.keys[k] == nil:
			continue
		case chance < 650:
			w.drop(k, random.IntN(len(w.keys[k].refs)))
		case chance < 950:
			w.get(k, random.IntN(len(w.keys[k].refs)))
		case chance < 954: // which every watch looks at
			w.write(secret{k, fmt.Sprint(step), random.IntN(10) == 0})
		case chance < 957:
			w.remove(k)
		default:
			w.pass(time.Duration(random.IntN(2000)) * time.Millisecond)
		}
		w.check()
		if step%500 == 0 {
			w.checkKeys()
		}
	}
	w.checkKeys()
	require.Greater(t, w.read, references/4, "too few reads were answered to say anything")
	require.Greater(t, w.refs, 1000)
	require.NotZero(t, w.cache.Stats().Immutable)
	require.NotZero(t, w.cache.Stats().Idle)
}

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

// world is a cache and a model of it.
type world struct {
	*fixture
	keys    map[string]*keyModel // those with references
	objects map[string]secret    // at the source
	down    bool                 // the source refuses lists
	refs    int
	needed  int // keys that need a Reflector
	read    int // reads that were answered
}

func newWorld(t tester, seed uint64) *world {
	return &world{fixture: newOpenFixture(t, seed), keys: map[string]*keyModel{}, objects: map[string]secret{}}
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

// arrive models a list.
func (w *world) arrive(k *keyModel, key string, at time.Time) {
	k.used = at
	w.set(k, followed)
	w.see(k, key)
}

// see models what a list or a watch brings: the newest state.
func (w *world) see(k *keyModel, key string) {
	k.seen = nil
	if o, ok := w.objects[key]; ok {
		k.seen = &o
		if o.Immutable {
			w.set(k, kept)
		}
	}
}

// begin models the start of a Reflector.
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

// churn releases all references of a key and acquires one before the cache has had a turn.
// What is followed must go on being followed; anything else begins, with a first reference.
func (w *world) churn(key string) {
	w.t.Helper()
	k := w.keys[key]
	for _, ref := range k.refs {
		ref.Release()
	}
	w.refs -= len(k.refs) - 1
	k.refs = append(k.refs[:0:0], w.acquire(key))
	w.settle()
	if k.state == idle || k.state == kept {
		w.begin(k, key)
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

// changed models an event of a watch.
func (w *world) changed(key string) {
	if k := w.keys[key]; k != nil && k.state == followed {
		w.see(k, key)
	}
}

// pass moves the clock: what was not read for long enough becomes idle.
func (w *world) pass(d time.Duration) {
	w.advance(d)
	for _, k := range w.keys {
		if k.state == followed && w.clock.Now().Sub(k.used) >= maxIdle {
			w.set(k, idle)
		}
	}
}

// fail makes lists fail. Watches go on.
func (w *world) fail() {
	w.down = true
	w.source.FailList(1<<30, nil)
}

// recover lets lists succeed again: a Reflector whose list failed tries again
// within the time between two attempts.
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

// check compares the cache with the model.
func (w *world) check() {
	w.t.Helper()
	require.Equal(w.t, w.needed, w.host.Actors()-1, "Reflectors running, and keys that need one")
}

// checkKeys compares each key.
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
			want.Immutable++
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
