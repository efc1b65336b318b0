package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// After a gap or a repetition in a batch, the engine has received no further event.
func TestMarkReceivedBatch_StopsAtAGap(t *testing.T) {
	for name, test := range map[string]struct {
		after    store.Revision
		events   []store.Revision
		received []store.Revision
	}{
		"all of it":              {2, []store.Revision{3, 4, 5}, []store.Revision{3, 4, 5}},
		"nothing":                {2, nil, nil},
		"one is missing":         {2, []store.Revision{3, 5, 6}, []store.Revision{3}},
		"the first is missing":   {2, []store.Revision{4, 5}, nil},
		"one is there twice":     {2, []store.Revision{3, 4, 4, 5}, []store.Revision{3, 4}},
		"it reaches back":        {2, []store.Revision{2, 3}, nil},
		"there is no such thing": {5, []store.Revision{6, 7}, []store.Revision{6}},
	} {
		t.Run(name, func(t *testing.T) {
			h := judge.NewHistory(func(a, b int) bool { return a == b })
			for n := range 5 { // up to revision 6
				h.Put("k", n)
			}
			batch := backend.Batch{After: test.after, Through: h.Newest()}
			for _, rev := range test.events {
				batch.Events = append(batch.Events, store.Event{Revision: rev})
			}
			h.MarkReceivedBatch(batch)
			var received []store.Revision
			for rev := judge.First + 1; rev <= 8; rev++ {
				if h.Received(rev) {
					received = append(received, rev)
				}
			}
			require.Equal(t, test.received, received)
		})
	}
}
