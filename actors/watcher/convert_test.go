package watcher_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

type (
	event  = store.Event[string]
	stored = store.Object[string]
)

// at is when the write of that revision happened.
func at(rev store.Revision) time.Time { return time.Unix(int64(rev), 0) }

func app(name string) *store.Filter {
	return store.FilterFor("", "", labels.SelectorFromSet(labels.Set{"app": name}), nil)
}

func state(app string, rev store.Revision) *stored {
	return &stored{Key: "a", Value: app, Revision: rev, Labels: labels.Set{"app": app}, Written: at(rev)}
}

func ExampleConvert() {
	web := store.FilterFor("", "", labels.SelectorFromSet(labels.Set{"app": "web"}), nil)
	before := &store.Object[string]{Key: "default/x", Labels: labels.Set{"app": "web"}, Revision: 3}
	after := &store.Object[string]{Key: "default/x", Labels: labels.Set{"app": "db"}, Revision: 7}

	seen, ok := watcher.Convert(web, store.Event[string]{
		Type: store.Modified, Revision: 7, Object: after, Prev: before,
	})
	fmt.Println(ok, seen, seen.Object.Labels["app"])
	// Output: true DELETED default/x@7 web
}

func ExampleConvertBatch() {
	web := store.FilterFor("", "", labels.SelectorFromSet(labels.Set{"app": "web"}), nil)
	a := &store.Object[string]{Key: "a", Labels: labels.Set{"app": "web"}}
	b := &store.Object[string]{Key: "b", Labels: labels.Set{"app": "db"}}
	for _, ev := range watcher.ConvertBatch(web, []store.Event[string]{
		{Type: store.Added, Revision: 1, Object: a},
		{Type: store.Added, Revision: 2, Object: b},
		{Type: store.Bookmark, Revision: 2},
	}) {
		fmt.Println(ev)
	}
	// Output:
	// ADDED a@1
	// BOOKMARK@2
}

func TestRow049_DeletedObjectHasTheRevisionOfTheDeletion(t *testing.T) {
	web, db := state("web", 3), state("db", 7)

	left, ok := watcher.Convert(app("web"), event{Type: store.Modified, Revision: 7, Object: db, Prev: web})
	require.True(t, ok)
	require.Equal(t, store.Deleted, left.Type)
	require.Equal(t, store.Revision(7), left.Object.Revision)
	require.Equal(t, at(7), left.Object.Written, "it was written when it left")
	require.Equal(t, "web", left.Object.Value, "it is the state that matched")
	require.Same(t, web, left.Prev)
	require.Equal(t, store.Revision(3), web.Revision, "the shared state is untouched")

	gone, ok := watcher.Convert(app("db"), event{Type: store.Deleted, Revision: 9, Object: db.Gone(9, at(9)), Prev: db})
	require.True(t, ok)
	require.Equal(t, store.Revision(9), gone.Object.Revision)
	require.Same(t, db, gone.Prev)
}

func TestRow115_ConvertKeepsMarks(t *testing.T) {
	web, db := state("web", 1), state("db", 2)
	marks := store.Synthetic | store.Conflated
	for name, ev := range map[string]event{
		"added":    {Type: store.Added, Revision: 1, Object: web},
		"entering": {Type: store.Modified, Revision: 2, Object: web, Prev: db},
		"staying":  {Type: store.Modified, Revision: 2, Object: web, Prev: web},
		"leaving":  {Type: store.Modified, Revision: 2, Object: db, Prev: web},
		"deleted":  {Type: store.Deleted, Revision: 2, Object: web, Prev: web},
		"emitted":  {Type: store.Emitted, Revision: 2, Object: web},
		"bookmark": {Type: store.Bookmark, Revision: 2},
	} {
		t.Run(name, func(t *testing.T) {
			ev.Marks = marks
			seen, ok := watcher.Convert(app("web"), ev)
			require.True(t, ok)
			require.Equal(t, marks, seen.Marks)
			require.Equal(t, ev.Revision, seen.Revision)
		})
	}
}

func TestConvertEnteringHasNoPrevious(t *testing.T) {
	ev := event{Type: store.Modified, Revision: 2, Object: state("web", 2), Prev: state("db", 1)}
	seen, ok := watcher.Convert(app("web"), ev)
	require.True(t, ok)
	require.Equal(t, event{Type: store.Added, Revision: 2, Object: ev.Object}, seen)
}

// Sources are written by users: what they leave out must not bring anything
// down.
func TestConvertIsTotal(t *testing.T) {
	for _, f := range []*store.Filter{nil, app("web"), store.FilterFor("a", "", nil, nil), store.FilterFor("", "", labels.Nothing(), nil)} {
		for eventType := range store.EventType(7) {
			for _, o := range []*stored{nil, {}, state("web", 2)} {
				for _, prev := range []*stored{nil, {}, state("web", 1)} {
					require.NotPanics(t, func() { watcher.Convert(f, event{Type: eventType, Revision: 2, Object: o, Prev: prev}) })
				}
			}
		}
	}
	lost, ok := watcher.Convert(app("web"), event{Type: store.Modified, Revision: 5, Prev: state("web", 1)})
	require.True(t, ok, "an object that is not there any more has left the selection")
	require.Equal(t, "DELETED a@5", lost.String())
}

func TestConvertAllocatesOnlyForLeaving(t *testing.T) {
	web, db := state("web", 1), state("db", 2)
	for name, c := range map[string]struct {
		filter *store.Filter
		ev     event
		allocs float64
	}{
		"unfiltered": {nil, event{Type: store.Modified, Object: db, Prev: web}, 0},
		"staying":    {app("web"), event{Type: store.Modified, Object: web, Prev: web}, 0},
		"entering":   {app("web"), event{Type: store.Modified, Object: web, Prev: db}, 0},
		"deleted":    {app("web"), event{Type: store.Deleted, Object: web, Prev: web}, 0},
		"not seen":   {app("x"), event{Type: store.Modified, Object: web, Prev: db}, 0},
		"leaving":    {app("web"), event{Type: store.Modified, Object: db, Prev: web}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.allocs, testing.AllocsPerRun(100, func() { watcher.Convert(c.filter, c.ev) }))
		})
	}
}

func TestConvertBatchReturnsItsInputWhenNothingChanges(t *testing.T) {
	web, db := state("web", 1), state("db", 2)
	all := []event{{Type: store.Added, Revision: 1, Object: web}, {Type: store.Modified, Revision: 2, Object: web, Prev: web}, {Type: store.Bookmark, Revision: 2}}
	for name, f := range map[string]*store.Filter{"unfiltered": nil, "all match": app("web")} {
		t.Run(name, func(t *testing.T) {
			got := watcher.ConvertBatch(f, all)
			require.Equal(t, all, got)
			require.Same(t, unsafe.SliceData(all), unsafe.SliceData(got))
			require.Zero(t, testing.AllocsPerRun(100, func() { watcher.ConvertBatch(f, all) }))
			require.Equal(t, len(got), cap(got), "appending must not write into the log")
		})
	}
	t.Run("one stretch matches", func(t *testing.T) {
		foreign := event{Type: store.Added, Revision: 3, Object: db}
		batch := slices.Concat([]event{foreign}, all, []event{foreign})
		got := watcher.ConvertBatch(app("web"), batch)
		require.Equal(t, all, got)
		require.Same(t, &batch[1], unsafe.SliceData(got))
		require.Equal(t, len(got), cap(got))
	})
	t.Run("nothing matches", func(t *testing.T) {
		require.Empty(t, watcher.ConvertBatch(app("x"), all[:2]))
		require.Empty(t, watcher.ConvertBatch[string](app("x"), nil))
	})
}

func TestConvertBatchConvertsEachEventAndLeavesItsInputAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		var batch []event
		for range rapid.IntRange(0, 12).Draw(t, "events") {
			batch = append(batch, h.anyWrite(t))
		}
		before := slices.Clone(batch)
		var want []event
		for _, ev := range batch {
			if seen, ok := watcher.Convert(app("1"), ev); ok {
				want = append(want, seen)
			}
		}
		got := watcher.ConvertBatch(app("1"), batch)
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
		_ = append(got, event{})
		require.Equal(t, before, batch)
	})
}

// Whoever applies what the filter lets through has, after every event, exactly
// the objects of the storage that match: row 154's projection.
func TestRow040_WatcherSeesTheProjectionOfTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := store.NewFilter(store.FilterOptions{
			Prefix: rapid.SampledFrom([]string{"", "ns1", "ns1/"}).Draw(t, "prefix"),
			Labels: rapid.SampledFrom([]string{"", "app=1", "app!=1", "app in (1,2)"}).Draw(t, "labels"),
			Fields: rapid.SampledFrom([]string{"", "node=1", "node!=1"}).Draw(t, "fields"),
		})
		require.NoError(t, err)
		h, mirror := newHistory(t), map[string]*stored{}
		for range rapid.IntRange(1, 30).Draw(t, "writes") {
			ev := h.anyWrite(t)
			if seen, ok := watcher.Convert(f, ev); ok {
				require.Equal(t, ev.Revision, seen.Revision)
				mirrorEvent(t, mirror, seen)
			}
			want := maps.Clone(h.objects)
			maps.DeleteFunc(want, func(_ string, o *stored) bool { return !store.Matches(f, o) })
			require.Equal(t, want, mirror)
		}
	})
}

// mirrorEvent applies an event as a client does, and demands that it makes
// sense to one.
func mirrorEvent(t *rapid.T, mirror map[string]*stored, ev event) {
	known := mirror[ev.Key()]
	switch ev.Type {
	case store.Added:
		require.Nil(t, known)
		require.Nil(t, ev.Prev)
		mirror[ev.Key()] = ev.Object
	case store.Modified:
		require.Same(t, known, ev.Prev)
		mirror[ev.Key()] = ev.Object
	case store.Deleted:
		require.Same(t, known, ev.Prev)
		require.Equal(t, known.Value, ev.Object.Value)
		require.Equal(t, ev.Revision, ev.Object.Revision)
		delete(mirror, ev.Key())
	}
}

// anyWrite makes a write that the history allows.
func (h *history) anyWrite(t *rapid.T) event {
	key := rapid.SampledFrom([]string{"ns1/a", "ns1/b", "ns10/a"}).Draw(t, "key")
	verbs := []string{"create", "emit"}
	if h.objects[key] != nil {
		verbs = []string{"update", "update", "delete", "emit"}
	}
	words := []string{rapid.SampledFrom(verbs).Draw(t, "verb"), key}
	for _, name := range []string{"app", ".node"} {
		if value := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, name); value != "" {
			words = append(words, name+"="+value)
		}
	}
	return h.write(words)
}

func BenchmarkConvert(b *testing.B) {
	web, db := state("web", 1), state("db", 2)
	for name, c := range map[string]struct {
		filter *store.Filter
		ev     event
	}{
		"unfiltered": {nil, event{Type: store.Modified, Object: web, Prev: web}},
		"staying":    {app("web"), event{Type: store.Modified, Object: web, Prev: web}},
		"leaving":    {app("web"), event{Type: store.Modified, Object: db, Prev: web}},
		"not seen":   {app("x"), event{Type: store.Modified, Object: db, Prev: web}},
		"by field": {
			store.FilterFor("", "", nil, fields.OneTermEqualSelector("node", "7")),
			event{Type: store.Modified, Object: &stored{Fields: fields.Set{"node": "7"}}, Prev: &stored{Fields: fields.Set{"node": "7"}}},
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				watcher.Convert(c.filter, c.ev)
			}
		})
	}
}
