package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/trace"
)

func object(key, version string, rev engine.Revision) *engine.Object[File] {
	return &engine.Object[File]{Key: key, Value: File{Path: key, Version: version}, Revision: rev}
}

// The final state hides an event that was lost or repeated on the way; the
// consumer's bookkeeping does not.
func TestEventsThatDoNotFitAreCounted(t *testing.T) {
	event := func(kind engine.EventType, key string, rev engine.Revision) engine.Event[File] {
		return engine.Event[File]{Type: kind, Revision: rev, Object: object(key, "v", rev)}
	}
	for name, c := range map[string]struct {
		events  []engine.Event[File]
		misfits int
	}{
		"as it should be": {[]engine.Event[File]{event(engine.Added, "a", 2), event(engine.Modified, "a", 3), event(engine.Deleted, "a", 4), event(engine.Added, "a", 5)}, 0},
		"twice":           {[]engine.Event[File]{event(engine.Added, "a", 2), event(engine.Modified, "a", 3), event(engine.Modified, "a", 3)}, 1},
		"out of order":    {[]engine.Event[File]{event(engine.Added, "a", 3), event(engine.Added, "b", 2)}, 1},
		"added again":     {[]engine.Event[File]{event(engine.Added, "a", 2), event(engine.Added, "a", 3)}, 1},
		"never added":     {[]engine.Event[File]{event(engine.Modified, "a", 2)}, 1},
		"never there":     {[]engine.Event[File]{event(engine.Deleted, "a", 2)}, 1},
		"not asked for":   {[]engine.Event[File]{{Type: engine.Bookmark, Revision: 2}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			consumer := &consumer{outcome: outcome{state: objects{}}, seen: 1}
			for _, ev := range c.events {
				consumer.apply(ev)
			}
			require.Equal(t, c.misfits, consumer.misfits)
		})
	}
	require.False(t, (&Report{Watchers: 1, Equal: 1, Misfits: 1}).OK())
}

func TestConflatedEventsMayComeInAnyOrder(t *testing.T) {
	c := &consumer{outcome: outcome{state: objects{}}, seen: 1}
	for _, ev := range []engine.Event[File]{
		{Type: engine.Added, Marks: engine.Conflated, Revision: 9, Object: object("a", "v", 9)},
		{Type: engine.Added, Marks: engine.Conflated, Revision: 4, Object: object("b", "v", 4)},
	} {
		c.apply(ev)
	}
	require.Zero(t, c.misfits)
	require.Equal(t, uint64(2), c.conflated)
	require.Equal(t, engine.Revision(9), c.seen)
}

func TestDifferencesAreFoundAndNamed(t *testing.T) {
	truth := byKey([]*engine.Object[File]{object("a", "1", 2), object("b", "1", 3)})
	for want, got := range map[string]objects{
		"":                                     byKey([]*engine.Object[File]{object("a", "1", 2), object("b", "1", 3)}),
		`"a" is not there and 1 at revision 2`: byKey([]*engine.Object[File]{object("b", "1", 3)}),
		`"b" is 2 at revision 3 and 1 at revision 3`: byKey([]*engine.Object[File]{object("a", "1", 2), object("b", "2", 3)}),
		`"b" is 1 at revision 4 and 1 at revision 3`: byKey([]*engine.Object[File]{object("a", "1", 2), object("b", "1", 4)}),
		`"c" is 1 at revision 4 and not there`:       byKey([]*engine.Object[File]{object("a", "1", 2), object("b", "1", 3), object("c", "1", 4)}),
	} {
		require.Equal(t, want, difference(got, truth))
		report := &Report{Watchers: 1}
		report.compareConsumer(&outcome{state: got}, truth)
		require.Equal(t, want == "", report.OK())
	}
	require.Empty(t, traceDifference(trace.State{"a": "1", "b": "1"}, truth))
	require.Equal(t, `"a" is 1 at revision 2 and should be 2`, traceDifference(trace.State{"a": "2", "b": "1"}, truth))
	require.Equal(t, `"b" is 1 at revision 3 and should not be`, traceDifference(trace.State{"a": "1"}, truth))
	require.Equal(t, `"c" is not there and should be 1`, traceDifference(trace.State{"a": "1", "b": "1", "c": "1"}, truth))
}

func TestLatencyLeavesOutWhatWasReplayed(t *testing.T) {
	start := time.Unix(0, 0)
	event := func(rev engine.Revision, marks engine.Marks) engine.Event[File] {
		o := object("a", "v", rev)
		o.Written = start
		return engine.Event[File]{Type: engine.Modified, Marks: marks, Revision: rev, Object: o}
	}
	l := newLatencies()
	l.record(0, start.Add(5*time.Millisecond), []engine.Event[File]{event(7, 0), event(8, 0)}, 7)
	l.record(17, start.Add(time.Millisecond), []engine.Event[File]{event(9, 0), event(10, engine.Conflated), {Type: engine.Bookmark, Revision: 11}}, 0)
	l.record(18, start.Add(-time.Millisecond), []engine.Event[File]{event(12, 0)}, 0)
	sum := l.sum()
	require.Equal(t, uint64(3), sum.Events)
	require.InEpsilon(t, 5*time.Millisecond, sum.Max, 0.001)
	require.InEpsilon(t, time.Millisecond, sum.P50, 0.001)
}

func TestBreaksAreSpreadOverTheWholeHistory(t *testing.T) {
	const n, rounds = 5, 2000
	quarters := [4]int{}
	for seed := range uint64(rounds) {
		b, points := newBreaks(seed, 1, n), 0
		for step := range 1000 {
			for progress := float64(step) / 1000; b.due(progress); points++ {
				quarters[step*4/1000]++
			}
		}
		for b.due(1) {
			points++
		}
		require.Equal(t, n, points)
	}
	for _, q := range quarters {
		require.InDelta(t, n*rounds/4, q, n*rounds/40, "uniform: %v", quarters)
	}
	a, b := newBreaks(1, 1, n), newBreaks(1, 2, n)
	require.NotEqual(t, a.next, b.next, "each consumer has points of its own")
	require.Equal(t, a.next, newBreaks(1, 1, n).next, "and the same ones again")
}

func TestFieldsOfAFile(t *testing.T) {
	for path, want := range map[string][2]string{
		"main.go":       {".", "go"},
		"actor/pid.go":  {"actor", "go"},
		"a/b/c.tar.gz":  {"a/b", "gz"},
		".gitignore":    {".", "gitignore"},
		"a.b/Makefile":  {"a.b", ""},
		"docs/trailing": {"docs", ""},
	} {
		f := File{Path: path}
		require.Equal(t, want, [2]string{f.dir(), f.ext()}, path)
	}
}

func TestAnObjectThatGoesBackIsAMisfit(t *testing.T) {
	h := &holder{outcome: outcome{state: objects{}}}
	two, three := object("a", "1", 2), object("a", "2", 3)
	for _, o := range []*engine.Object[File]{nil, two, two, three, nil, nil, three} {
		h.see("a", o)
	}
	require.Zero(t, h.misfits)
	require.EqualValues(t, 4, h.delivered.Load())
	h.see("a", two)
	require.Equal(t, 1, h.misfits)
}
