package load

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/load/internal/pipeline"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store/cache"
)

// What the indexer refuses is missing in the state of the watcher, and the report says why.
func TestQueue_ReportsWhatItsIndexerRefuses(t *testing.T) {
	queue, err := pipeline.New(cache.Indexers[states.Item]{"none": func(states.Item) ([]string, error) { return nil, errors.New("refused") }})
	require.NoError(t, err)
	require.NoError(t, queue.Replace([]states.Item{file("a", "1", 1)}, 1))
	r := &run{}
	w := &watcher{run: r, group: &watchers{spec: &scenario.Watcher{Name: "w"}}, pipeline: queue}
	w.trail.KeepObjects()
	w.finishPipeline()
	require.Empty(t, w.trail.Objects())
	require.Len(t, r.failed.all(), 1)
	require.Regexp(t, "^w-0: .*refused", r.failed.all()[0])
}
