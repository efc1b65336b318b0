package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// A watch of storage that has gone back must not continue a list of before, even if the two
// histories have the same changes.
func TestJudge_AWatchContinuesTheHistoryOfItsList(t *testing.T) {
	h := judge.NewHistory(func(a, b int) bool { return a == b })
	h.Put("a", 1)
	for _, back := range []store.Revision{judge.First, h.Newest()} {
		forked := h.Fork(back)
		for h.Newest() > forked.Newest() {
			forked.Put("a", 2)
		}
		record := func() *judge.Record[int] {
			return &judge.Record[int]{
				Name: "w", Selects: func(int) bool { return true }, Options: engine.WatchOptions{From: h.Newest()},
				Earliest: h.Newest(), Latest: h.Newest(), Drained: true, Continues: h,
			}
		}
		require.NoError(t, h.Judge(record()))
		err := forked.Judge(record())
		require.Equal(t, judge.OneTimeline, judge.Broken(err))
		require.ErrorContains(t, err, "w")
		require.NoError(t, h.JudgeTimeline("page", h))
		require.Equal(t, judge.OneTimeline, judge.Broken(forked.JudgeTimeline("page", h)))
	}
}
