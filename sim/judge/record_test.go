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
		"perhaps it was not": {judge.Record[int]{
			Options: engine.WatchOptions{InitialState: true, Buffer: 1},
			Events:  append(event(store.Initial, 3, 2), event(0, 6)...),
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, test.record.MayExpire(test.last))
			require.True(t, test.record.MayExpire(test.last+1))
		})
	}
}
