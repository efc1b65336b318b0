package watchcache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

var byApp = store.LabelAttribute("app")

// source is storage that keeps a state of its own, with its log.
type source struct {
	tree   *tree.Tree
	window *window.Window
	rev    store.Revision
}

func newSource(indexes ...store.Attribute) *source {
	s := &source{tree: tree.New(indexes...), window: window.New(window.Limits{ChunkSize: 3}, nil)}
	s.window.Reset(0)
	return s
}

// write changes the object under key, or deletes it, and returns the event.
func (s *source) write(key string, remove bool) store.Event {
	s.rev++
	o := &store.Object{Key: key, Revision: s.rev}
	ev := store.Event{Type: store.Added, Revision: s.rev, Object: o, Prev: s.tree.Get(key)}
	switch {
	case ev.Prev == nil:
	case remove:
		ev.Type = store.Deleted
	default:
		ev.Type = store.Modified
	}
	s.tree.Apply(ev)
	s.window.Append(ev, began)
	return ev
}

func described(v *tree.View) (text string) {
	for o := range v.All("", "") {
		text += fmt.Sprint(o.Key, "@", o.Revision, " ")
	}
	return text
}

// Whether the state comes with some batches, with all or with none, and whether readers ask
// for it at once, later or not at all, what is published after any of them is what the
// source has.
func TestState_IsThatOfTheSourceHoweverItComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := newSource()
		own := window.New(window.Limits{ChunkSize: 2}, nil)
		s := newState(reflector.Update{State: src.tree.View()}, nil)
		var texts []string
		published := []*window.Snapshot{{}}
		for range rapid.IntRange(0, 20).Draw(t, "batches") {
			for range rapid.IntRange(1, MaxUnapplied/4).Draw(t, "events") {
				own.Append(src.write(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), rapid.Bool().Draw(t, "remove")), began)
			}
			if rapid.Bool().Draw(t, "with its state") {
				s = state{base: src.tree.View(), at: own.View().Next()}
			}
			next := &window.Snapshot{Window: own.View()}
			s.publish(published[len(published)-1], next)
			require.LessOrEqual(t, next.Unapplied, int32(MaxUnapplied))
			published, texts = append(published, next), append(texts, described(src.tree.View()))
			if rapid.Bool().Draw(t, "read") {
				require.Equal(t, texts[len(texts)-1], described(next.State()))
			}
		}
		for i, snap := range published[1:] {
			require.Equal(t, texts[i], described(snap.State()), "read later")
		}
		require.Equal(t, described(src.tree.View()), described(s.newest(own.View())))
	})
}

func TestState_WithoutAnIndexThatIsNeededIsNotTakenOver(t *testing.T) {
	src := newSource()
	src.write("a", false)
	u := reflector.Update{State: src.tree.View()}
	s := newState(u, []store.Attribute{byApp})
	require.NotNil(t, s.tree)
	require.NotSame(t, src.tree.View(), s.newest(window.View{}))
	require.True(t, s.newest(window.View{}).Indexed(byApp))
	require.Equal(t, "a@1 ", described(s.newest(window.View{})))
	require.False(t, usable(src.tree.View(), []store.Attribute{byApp}))
	require.False(t, usable(nil, nil))

	indexed := newSource(byApp)
	require.True(t, usable(indexed.tree.View(), []store.Attribute{byApp}))
	require.True(t, usable(indexed.tree.View(), nil), "one more does no harm")
}

// An event that does not fit shows that one before it was lost, and must leave
// no trace: what is listed next is compared with the state.
func TestState_IsAsBeforeWhenAnEventDoesNotFit(t *testing.T) {
	a := &store.Object{Key: "a", Revision: 1}
	s := newState(reflector.Update{Objects: []*store.Object{a}}, nil)
	for _, ev := range []store.Event{
		{Type: store.Added, Object: &store.Object{Key: "a", Revision: 2}},
		{Type: store.Modified, Object: &store.Object{Key: "b", Revision: 2}},
		{Type: store.Deleted, Object: &store.Object{Key: "b", Revision: 2}},
	} {
		_, fits := s.apply(ev)
		require.False(t, fits, "%v", ev)
		require.Equal(t, "a@1 ", described(s.tree.View()))
		require.Same(t, a, s.tree.View().Get("a"))
	}
	prev, fits := s.apply(store.Event{Type: store.Emitted, Object: &store.Object{Key: "a", Revision: 2}})
	require.True(t, fits)
	require.Nil(t, prev)
	prev, fits = s.apply(store.Event{Type: store.Deleted, Object: &store.Object{Key: "a", Revision: 2}})
	require.True(t, fits)
	require.Same(t, a, prev)
}
