package watcher_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

func ExampleConvert() {
	web, _ := store.NewFilter(nil, store.FilterOptions{Labels: "app=web"})
	before := &thing{Object: store.Object{Key: "default/x", Labels: store.LabelsOf(labels.Set{"app": "web"}), Revision: 3}}
	after := &thing{Object: store.Object{Key: "default/x", Labels: store.LabelsOf(labels.Set{"app": "db"}), Revision: 7}}

	seen, ok := watcher.Convert(schema, web, store.Event{
		Type: store.Modified, Revision: 7, Object: &after.Object, Prev: &before.Object,
	})
	fmt.Println(ok, seen, seen.Object.Labels.Get("app"))
	// Output: true DELETED default/x@7 web
}

func ExampleConvertBatch() {
	web, _ := store.NewFilter(nil, store.FilterOptions{Labels: "app=web"})
	a := &store.Object{Key: "a", Labels: store.LabelsOf(labels.Set{"app": "web"})}
	b := &store.Object{Key: "b", Labels: store.LabelsOf(labels.Set{"app": "db"})}
	for _, ev := range watcher.ConvertBatch(schema, web, []store.Event{
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

func TestConvert_DeletedObjectHasTheRevisionOfTheDeletion(t *testing.T) {
	web, db := state("web", 3), state("db", 7)

	left, ok := watcher.Convert(schema, app("web"), store.Event{Type: store.Modified, Revision: 7, Object: db, Prev: web})
	require.True(t, ok)
	require.Equal(t, store.Deleted, left.Type)
	require.Equal(t, store.Revision(7), left.Object.Revision)
	require.Equal(t, at(7), left.Object.Written, "it was written when it left")
	require.Equal(t, "web", value(left.Object), "it is the state that matched")
	require.Same(t, web, left.Prev)
	require.Equal(t, store.Revision(3), web.Revision, "the shared state is untouched")

	gone, ok := watcher.Convert(schema, app("db"), store.Event{Type: store.Deleted, Revision: 9, Object: schema.Gone(db, 9, at(9)), Prev: db})
	require.True(t, ok)
	require.Equal(t, store.Revision(9), gone.Object.Revision)
	require.Same(t, db, gone.Prev)
}

func TestConvert_KeepsMarks(t *testing.T) {
	web, db := state("web", 1), state("db", 2)
	marks := store.Synthetic | store.Conflated
	for name, ev := range map[string]store.Event{
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
			seen, ok := watcher.Convert(schema, app("web"), ev)
			require.True(t, ok)
			require.Equal(t, marks, seen.Marks)
			require.Equal(t, ev.Revision, seen.Revision)
		})
	}
}

func TestConvert_EnteringHasNoPrevious(t *testing.T) {
	ev := store.Event{Type: store.Modified, Revision: 2, Object: state("web", 2), Prev: state("db", 1)}
	seen, ok := watcher.Convert(schema, app("web"), ev)
	require.True(t, ok)
	require.Equal(t, store.Event{Type: store.Added, Revision: 2, Object: ev.Object}, seen)
}

// Sources are written by users: what they leave out must not bring anything
// down.
func TestConvert_IsTotal(t *testing.T) {
	for _, f := range []*store.Filter{nil, app("web"), filter(store.FilterOptions{Key: "a"}), filter(store.FilterOptions{LabelSelector: labels.Nothing()})} {
		for eventType := range store.EventType(7) {
			for _, o := range []*store.Object{nil, blank(), state("web", 2)} {
				for _, prev := range []*store.Object{nil, blank(), state("web", 1)} {
					require.NotPanics(t, func() { watcher.Convert(schema, f, store.Event{Type: eventType, Revision: 2, Object: o, Prev: prev}) })
				}
			}
		}
	}
	lost, ok := watcher.Convert(schema, app("web"), store.Event{Type: store.Modified, Revision: 5, Prev: state("web", 1)})
	require.True(t, ok, "an object that is not there any more has left the selection")
	require.Equal(t, "DELETED a@5", lost.String())
}

func TestConvert_AllocatesOnlyForLeaving(t *testing.T) {
	web, db := state("web", 1), state("db", 2)
	for name, c := range map[string]struct {
		filter *store.Filter
		ev     store.Event
		allocs float64
	}{
		"unfiltered": {nil, store.Event{Type: store.Modified, Object: db, Prev: web}, 0},
		"staying":    {app("web"), store.Event{Type: store.Modified, Object: web, Prev: web}, 0},
		"entering":   {app("web"), store.Event{Type: store.Modified, Object: web, Prev: db}, 0},
		"deleted":    {app("web"), store.Event{Type: store.Deleted, Object: web, Prev: web}, 0},
		"not seen":   {app("x"), store.Event{Type: store.Modified, Object: web, Prev: db}, 0},
		"leaving":    {app("web"), store.Event{Type: store.Modified, Object: db, Prev: web}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.allocs, testing.AllocsPerRun(100, func() { watcher.Convert(schema, c.filter, c.ev) }))
		})
	}
}

func TestConvertBatch_ReturnsItsInputWhenNothingChanges(t *testing.T) {
	web, db := state("web", 1), state("db", 2)
	all := []store.Event{{Type: store.Added, Revision: 1, Object: web}, {Type: store.Modified, Revision: 2, Object: web, Prev: web}, {Type: store.Bookmark, Revision: 2}}
	for name, f := range map[string]*store.Filter{"unfiltered": nil, "all match": app("web")} {
		t.Run(name, func(t *testing.T) {
			got := watcher.ConvertBatch(schema, f, all)
			require.Equal(t, all, got)
			require.Same(t, unsafe.SliceData(all), unsafe.SliceData(got))
			require.Zero(t, testing.AllocsPerRun(100, func() { watcher.ConvertBatch(schema, f, all) }))
			require.Equal(t, len(got), cap(got), "appending must not write into the log")
		})
	}
	t.Run("one stretch matches", func(t *testing.T) {
		foreign := store.Event{Type: store.Added, Revision: 3, Object: db}
		batch := slices.Concat([]store.Event{foreign}, all, []store.Event{foreign})
		got := watcher.ConvertBatch(schema, app("web"), batch)
		require.Equal(t, all, got)
		require.Same(t, &batch[1], unsafe.SliceData(got))
		require.Equal(t, len(got), cap(got))
	})
	t.Run("nothing matches", func(t *testing.T) {
		require.Empty(t, watcher.ConvertBatch(schema, app("x"), all[:2]))
		require.Empty(t, watcher.ConvertBatch(schema, app("x"), nil))
	})
}

func TestConvertBatch_ConvertsEachEventAndLeavesItsInputAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		var batch []store.Event
		for range rapid.IntRange(0, 12).Draw(t, "events") {
			batch = append(batch, h.anyWrite(t))
		}
		before := slices.Clone(batch)
		var want []store.Event
		for _, ev := range batch {
			if seen, ok := watcher.Convert(schema, app("1"), ev); ok {
				want = append(want, seen)
			}
		}
		got := watcher.ConvertBatch(schema, app("1"), batch)
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
		_ = append(got, store.Event{})
		require.Equal(t, before, batch)
	})
}

// A consumer that applies what the filter lets through has, after every event,
// exactly the objects of storage that match.
func TestCursor_ShowsTheProjectionOfTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := store.NewFilter(columns, store.FilterOptions{
			Prefix: rapid.SampledFrom([]string{"", "ns1", "ns1/"}).Draw(t, "prefix"),
			Labels: rapid.SampledFrom([]string{"", "app=1", "app!=1", "app in (1,2)"}).Draw(t, "labels"),
			Fields: rapid.SampledFrom([]string{"", "node=1", "node!=1"}).Draw(t, "fields"),
		})
		require.NoError(t, err)
		h, mirror := newHistory(t), map[string]*store.Object{}
		for range rapid.IntRange(1, 30).Draw(t, "writes") {
			ev := h.anyWrite(t)
			if seen, ok := watcher.Convert(schema, f, ev); ok {
				require.Equal(t, ev.Revision, seen.Revision)
				mirrorEvent(t, mirror, seen)
			}
			want := maps.Clone(h.objects)
			maps.DeleteFunc(want, func(_ string, o *store.Object) bool { return !store.Matches(f, o) })
			require.Equal(t, want, mirror)
		}
	})
}

// mirrorEvent applies an event as a client does, and demands that it makes
// sense to one.
func mirrorEvent(t *rapid.T, mirror map[string]*store.Object, ev store.Event) {
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
		require.Equal(t, value(known), value(ev.Object))
		require.Equal(t, ev.Revision, ev.Object.Revision)
		delete(mirror, ev.Key())
	}
}

// anyWrite makes a write that the history allows.
func (h *history) anyWrite(t *rapid.T) store.Event {
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

// blank is an object without anything.
func blank() *store.Object { return &new(thing).Object }

// on is an object on that node.
func on(node string) *store.Object {
	o := state("web", 1)
	o.Fields[column("node")] = node
	return o
}

func BenchmarkConvert(b *testing.B) {
	web, db := state("web", 1), state("db", 2)
	for name, c := range map[string]struct {
		filter *store.Filter
		ev     store.Event
	}{
		"unfiltered": {nil, store.Event{Type: store.Modified, Object: web, Prev: web}},
		"staying":    {app("web"), store.Event{Type: store.Modified, Object: web, Prev: web}},
		"leaving":    {app("web"), store.Event{Type: store.Modified, Object: db, Prev: web}},
		"not seen":   {app("x"), store.Event{Type: store.Modified, Object: db, Prev: web}},
		"by field": {
			filter(store.FilterOptions{Fields: "node=7"}),
			store.Event{Type: store.Modified, Object: on("7"), Prev: on("7")},
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				watcher.Convert(schema, c.filter, c.ev)
			}
		})
	}
}
