package informer_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
)

// resyncEvery is the period of the handlers that have one.
const resyncEvery = time.Minute

// content is a state of the source: the revision of each object.
type content map[string]store.Revision

func contentOf(objects func(yield func(*informer.Object[pod]) bool)) content {
	c := content{}
	for o := range objects {
		c[o.Key] = o.Revision
	}
	return c
}

// world is an informer, with the states that its source has had.
type world struct {
	*fixture
	states  map[store.Revision]content        // each state
	written map[store.Revision]pod            // by each write that is not a deletion
	before  map[store.Revision]store.Revision // of the object that a write replaced, zero for none
	created map[store.Revision]store.Revision // of the object that a write created or changed
	newest  store.Revision

	indexes     cache.Indexers[pod]
	failing     bool           // Transform fails for one write of three
	transformed map[int]int    // calls of Transform by N of the value, which no other write has
	reached     store.Revision // of the copy
	handlers    []*subscriber
}

func newWorld(t *rapid.T) *world {
	w := &world{
		states: map[store.Revision]content{}, written: map[store.Revision]pod{}, before: map[store.Revision]store.Revision{},
		created: map[store.Revision]store.Revision{}, indexes: cache.Indexers[pod]{"node": byNode}, transformed: map[int]int{},
	}
	w.fixture = newSeededFixture(t, rapid.Uint64().Draw(t, "seed"), func(c *informer.Config[pod]) {
		c.Indexers = maps.Clone(w.indexes)
		transform := rapid.SampledFrom([]string{"none", "works", "fails"}).Draw(t, "transform")
		w.failing = transform == "fails"
		c.ItemErrors = rapid.SampledFrom([]informer.ItemErrorPolicy{informer.Skip, informer.Quarantine}).Draw(t, "item errors")
		if transform != "none" {
			c.Transform = func(p pod) (pod, error) {
				w.transformed[p.N]++
				if w.failsFor(p) {
					return p, errBad
				}
				return p, nil
			}
		}
	})
	var err error
	w.newest, err = w.source.Revision(context.Background())
	require.NoError(t, err)
	w.states[w.newest] = content{}
	return w
}

// put writes an object, without letting anything run.
func (w *world) put(key, node string) {
	value := pod{Name: key, Node: node, N: len(w.states)}
	rev := w.write(value)
	w.wrote(key, rev)
	w.states[rev][key], w.written[rev], w.created[rev] = rev, value, rev
	if before := w.before[rev]; before != 0 {
		w.created[rev] = w.created[before]
	}
}

// change writes an object so that handlers are notified.
func (w *world) change(key, node string) {
	w.put(key, node)
	if w.left(w.newest) {
		w.put(key, node)
	}
}

// failsFor reports whether Transform fails for a value.
func (w *world) failsFor(p pod) bool { return w.failing && p.N%3 == 0 }

// left reports whether Transform fails for the object that was written at rev, so that its state
// before, if any, is left.
func (w *world) left(rev store.Revision) bool { return rev != 0 && w.failsFor(w.written[rev]) }

// shows reports whether c is the state of the source at rev. Of an object for which Transform
// fails, it has an earlier state, or none.
func (w *world) shows(c content, rev store.Revision) bool {
	for key, now := range w.states[rev] {
		if c[key] == 0 && !w.left(now) {
			return false
		}
	}
	for key, shown := range c {
		now := w.states[rev][key]
		earlier := w.left(now) && shown < now && w.created[shown] == w.created[now]
		if w.left(shown) || shown != now && !earlier {
			return false
		}
	}
	return true
}

// remove deletes an object, if there is one, without letting anything run.
func (w *world) remove(key string) {
	if w.states[w.newest][key] == 0 {
		return
	}
	rev, err := w.source.Delete(key)
	require.NoError(w.t, err)
	w.wrote(key, rev)
	delete(w.states[rev], key)
}

// recreate deletes an object and creates another of its key, without letting anything run.
func (w *world) recreate(key, node string) {
	w.remove(key)
	w.put(key, node)
}

// wrote begins the state after a write.
func (w *world) wrote(key string, rev store.Revision) {
	w.before[rev] = w.states[w.newest][key]
	w.states[rev], w.newest = maps.Clone(w.states[w.newest]), rev
}

// doing returns what happens while a handler is called: writes, or that time passes.
func (w *world) doing(what, key, node string) func() {
	switch what {
	case "write":
		return func() { w.put(key, node) }
	case "remove":
		return func() { w.remove(key) }
	case "recreate":
		return func() { w.recreate(key, node) }
	}
	return func() { w.clock.Advance(resyncEvery) }
}

// running returns the handlers that have not been removed.
func (w *world) running() []*subscriber {
	return slices.DeleteFunc(slices.Clone(w.handlers), func(h *subscriber) bool { return h.how != nil })
}

// oneOf draws a handler; if there is none, the walk does something else.
func oneOf(t *rapid.T, handlers []*subscriber) *subscriber {
	if len(handlers) == 0 {
		t.Skip("there is no handler")
	}
	return rapid.SampledFrom(handlers).Draw(t, "handler")
}

// quicken makes all handlers do nothing but return.
func (w *world) quicken() {
	for _, h := range w.handlers {
		h.during = nil
	}
}

// expire makes the watch lose what it has not delivered yet, so that the informer lists again.
func (w *world) expire() {
	require.NoError(w.t, w.source.Forget())
	w.source.ResetWatches(engine.ErrExpired)
}

func (w *world) addIndex() {
	parity := cache.Indexers[pod]{"parity": func(p pod) ([]string, error) { return []string{fmt.Sprint(p.N % 2)}, nil }}
	err := w.AddIndexers(parity)
	if w.indexes["parity"] != nil {
		require.ErrorIs(w.t, err, informer.ErrIndexConflict)
		return
	}
	require.NoError(w.t, err)
	maps.Copy(w.indexes, parity)
}

// check demands what always holds.
func (w *world) check() {
	w.checkCopy()
	for _, h := range w.handlers {
		h.check()
	}
	for n, calls := range w.transformed {
		require.True(w.t, calls == 1 || w.failsFor(pod{N: n}), "%d transformations of the write %d", calls, n)
	}
}

func (w *world) checkCopy() {
	s := w.Snapshot()
	require.Equal(w.t, s.Revision() > 0, w.HasSynced())
	require.GreaterOrEqual(w.t, s.Revision(), w.reached)
	if w.reached = s.Revision(); w.reached == 0 {
		require.Zero(w.t, s.Len())
		return
	}
	shown := contentOf(s.All())
	require.True(w.t, w.shows(shown, s.Revision()), "%v is not %v", shown, w.states[s.Revision()])
	for o := range s.All() {
		require.Equal(w.t, w.written[o.Revision], o.Value)
		require.Same(w.t, o, w.Get(o.Key))
	}
	for name, values := range w.indexes {
		w.checkIndex(s, name, values)
	}
}

func (w *world) checkIndex(s informer.Snapshot[pod], name string, values cache.IndexFunc[pod]) {
	want := map[string][]string{}
	for o := range s.All() {
		of, err := values(o.Value)
		if err != nil {
			continue // an object for which it fails is in no index
		}
		for _, value := range of {
			want[value] = append(want[value], o.Key)
		}
	}
	found, err := s.IndexValues(name)
	require.NoError(w.t, err)
	require.ElementsMatch(w.t, slices.Collect(maps.Keys(want)), found)
	for value := range want {
		objects, err := s.ByIndex(name, value)
		require.NoError(w.t, err)
		require.Equal(w.t, want[value], keys(objects))
	}
}

// settle ends all faults, lets everything run, and demands that everything has arrived.
func (w *world) settle() {
	w.source.Resume()
	w.pass(time.Minute) // which is longer than any list fails
	require.Equal(w.t, w.newest, w.Snapshot().Revision())
	w.check()
	for _, h := range w.handlers {
		h.checkSettled()
	}
	require.Equal(w.t, len(w.running()), w.Stats().Handlers)
	require.Equal(w.t, w.Snapshot().Len(), w.Stats().Objects)
}

// resync lets one period pass, in which nothing else happens.
func (w *world) resync() {
	w.quicken()
	w.settle()
	for _, h := range w.handlers {
		h.resynced = nil
	}
	w.pass(resyncEvery)
	for _, h := range w.handlers {
		want := []string(nil)
		if h.how == nil && h.options.Resync > 0 {
			want = slices.Sorted(maps.Keys(h.known))
		}
		require.Equal(w.t, want, h.resynced)
	}
}

// end ends the informer in one of several ways, after which no handler is called.
func (w *world) end(how string) {
	w.quicken()
	switch how {
	case "stop":
		w.Stop()
		w.executor.Run()
	case "source":
		w.source.Resume()
		require.NoError(w.t, w.source.Close())
		w.pass(time.Minute)
		require.ErrorIs(w.t, w.Err(), store.ErrClosed)
		w.check()
		for _, h := range w.handlers {
			h.checkReached(w.Snapshot().Revision())
		}
	case "settled":
		w.settle()
	}
	require.NoError(w.t, w.Close())
	for _, h := range w.handlers {
		h.checkEnded()
	}
	w.check()
	if how != "source" {
		w.put("a", "x")
	}
	w.pass(2 * resyncEvery)
	w.check()
}
