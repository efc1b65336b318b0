package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// A watch that expires delivers its backlog before it returns the error.
func TestMayExpire_CountsWhatAWatchHasBuffered(t *testing.T) {
	event := func(marks store.Marks, revs ...store.Revision) (events []engine.Event[int]) {
		for _, rev := range revs {
			events = append(events, engine.Event[int]{Type: store.Added, Marks: marks, Revision: rev})
		}
		return events
	}
	for name, test := range map[string]struct {
		record judge.Record[int]
		last   store.Revision // the highest floor that has not moved past the watch
	}{
		"from a revision":          {judge.Record[int]{Options: engine.WatchOptions{From: 5}}, 5},
		"from now":                 {judge.Record[int]{Earliest: 7}, 7},
		"all that it has was kept": {judge.Record[int]{Options: engine.WatchOptions{From: 5}, Events: event(0, 6, 8)}, 5},
		"it has more":              {judge.Record[int]{Options: engine.WatchOptions{From: 5, Buffer: 1}, Events: event(0, 6, 8)}, 6},
		"the state was whole": {judge.Record[int]{
			Options: engine.WatchOptions{InitialState: true, Buffer: 1},
			Events:  append(event(store.Initial, 3, 2), event(0, 6, 8)...),
		}, 6},
		"the state is all that it had before": {judge.Record[int]{
			Options: engine.WatchOptions{InitialState: true, Buffer: 1}, Earliest: 4,
			Events: append(event(store.Initial, 3, 2), event(0, 6)...),
		}, 4},
		"it has no more than a part of the state": {judge.Record[int]{
			Options: engine.WatchOptions{InitialState: true, From: 2}, Earliest: 4, Events: event(store.Initial, 3),
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, test.record.MayExpire(test.last))
			require.True(t, test.record.MayExpire(test.last+1))
		})
	}
}

// What a watch does not select cannot have left the window before the consumer had it, nor make it slow.
func TestLacks_CountsWhatTheWatchSelects(t *testing.T) {
	h := judge.NewHistory(func(a, b int) bool { return a == b })
	for value := range 5 { // at the revisions from 2 to 6
		h.MarkReceived(h.Put("a", value))
	}
	even := func(n int) bool { return n%2 == 0 } // from 2 on it comes and goes at each revision
	r := judge.Record[int]{Selects: even, Options: engine.WatchOptions{From: 2}}
	require.Equal(t, 4, h.Lacks(&r, 6))
	require.Equal(t, 2, h.Lacks(&r, 4))
	r.Events = []engine.Event[int]{{Type: store.Modified, Revision: 5}}
	require.Equal(t, 1, h.Lacks(&r, 9))
	r.Selects = func(int) bool { return false }
	require.Zero(t, h.Lacks(&r, 6))
	h.Put("b", 1) // which the engine has not received
	require.Equal(t, 1, h.Lacks(&r, 7))
	r.Uncached = true
	require.Zero(t, h.Lacks(&r, 7))
}
