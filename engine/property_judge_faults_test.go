package engine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// judged is a short history and what a watch of the web things, with its
// initial state at revision 3, should be given of it.
func judged() (*truth, *record) {
	t := newTruth()
	web := func(key string, n int) thing { return thing{Key: key, App: "web", N: n} }
	t.add(engine.Added, web("a", 1))                   // 2
	t.add(engine.Added, thing{Key: "b", App: "db"})    // 3
	t.add(engine.Added, web("b", 2))                   // 4: comes to match
	t.add(engine.Added, web("a", 3))                   // 5
	t.add(engine.Added, thing{Key: "c", App: "db"})    // 6: not shown
	t.add(engine.Deleted, thing{Key: "a"})             // 7
	t.add(engine.Emitted, web("note", 4))              // 8
	t.add(engine.Added, thing{Key: "b", App: "cache"}) // 9: matches no longer
	for rev := engine.Revision(2); rev <= t.newest(); rev++ {
		t.witnessed[rev] = true
	}
	object := func(key string, rev engine.Revision, n int) *engine.Object[thing] {
		return &engine.Object[thing]{Key: key, Revision: rev, Value: web(key, n)}
	}
	return t, &record{
		want: wants[1], from: 1, until: 5, drained: true,
		opts: engine.WatchOptions{Labels: "app=web", InitialState: true, Bookmarks: true},
		events: []engine.Event[thing]{
			{Type: engine.Added, Marks: engine.Initial, Revision: 2, Object: object("a", 2, 1)},
			{Type: engine.Bookmark, Marks: engine.InitialEnd, Revision: 3},
			{Type: engine.Added, Revision: 4, Object: object("b", 4, 2)},
			{Type: engine.Modified, Revision: 5, Object: object("a", 5, 3), Prev: object("a", 2, 1)},
			{Type: engine.Bookmark, Revision: 6},
			{Type: engine.Deleted, Revision: 7, Object: object("a", 7, 3), Prev: object("a", 5, 3)},
			{Type: engine.Emitted, Revision: 8, Object: object("note", 8, 4)},
			{Type: engine.Deleted, Revision: 9, Object: object("b", 9, 2), Prev: object("b", 4, 2)},
		},
		claims: []claim{{3, 4}, {8, 9}},
	}
}

func TestJudgeAcceptsWhatHappened(t *testing.T) {
	truth, r := judged()
	require.NoError(t, truth.verdict(r))
	r.drained, r.events = false, r.events[:6]
	require.NoError(t, truth.verdict(r), "a watch that has not been read to its end")
}

// The properties are worth nothing if the judge lets things pass.
func TestJudgeFindsWhatIsWrong(t *testing.T) {
	for name, spoil := range map[string]func(*truth, *record){
		"an event is missing":       func(_ *truth, r *record) { r.events = slices.Delete(r.events, 3, 4) },
		"an emitted one is missing": func(_ *truth, r *record) { r.events = slices.Delete(r.events, 6, 7) },
		"the last one is missing":   func(_ *truth, r *record) { r.events, r.claims = r.events[:7], nil },
		"one comes twice":           func(_ *truth, r *record) { r.events = slices.Insert(r.events, 3, r.events[2]) },
		"two change places":         func(_ *truth, r *record) { r.events[2], r.events[3] = r.events[3], r.events[2] },
		"a bookmark is too early":   func(_ *truth, r *record) { r.events[4].Revision = 7 },
		"a bookmark is too late":    func(_ *truth, r *record) { r.events[4].Revision = 4 },
		"the state lacks an object": func(_ *truth, r *record) { r.events = r.events[1:] },
		"the state ends too late":   func(_ *truth, r *record) { r.events[1].Revision = 4 },
		"a type is wrong":           func(_ *truth, r *record) { r.events[2].Type = engine.Modified },
		"a value is wrong": func(_ *truth, r *record) {
			r.events[2].Object = &engine.Object[thing]{Key: "b", Revision: 4, Value: thing{Key: "b", App: "web"}}
		},
		"a previous state is missing": func(_ *truth, r *record) { r.events[3].Prev = nil },
		"what is not selected is shown": func(_ *truth, r *record) {
			r.events = slices.Insert(r.events, 5, engine.Event[thing]{Type: engine.Added, Revision: 6, Object: &engine.Object[thing]{Key: "c", Revision: 6}})
		},
		"a mark is missing":              func(t *truth, _ *record) { t.witnessed[5] = false },
		"it is conflated without asking": func(_ *truth, r *record) { r.events[3].Marks = engine.Conflated },
		"it claims too much":             func(_ *truth, r *record) { r.claims[0].revision = 5 },
	} {
		t.Run(name, func(t *testing.T) {
			truth, r := judged()
			spoil(truth, r)
			require.Error(t, truth.verdict(r))
		})
	}
}

// A watch of the last events has neither fewer nor more of them.
func TestJudgeCountsTheLastEvents(t *testing.T) {
	last := func(first engine.Revision) error {
		truth, r := judged()
		r.opts.InitialState, r.opts.Last, r.first = false, 4, first
		r.events, r.claims = r.events[4:], nil // from the bookmark at 6 on
		return truth.verdict(r)
	}
	require.NoError(t, last(5))
	require.Error(t, last(4), "the event at 5 is missing")
	require.Error(t, last(7), "there is one too many")
}
