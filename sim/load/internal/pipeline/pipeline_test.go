package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/pipeline"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/store/cache"
)

func file(key, version string, rev engine.Revision) states.Item {
	return &engine.Object[content.Item]{Key: key, Value: content.Item{Key: key, Version: version}, Revision: rev}
}

func TestPipeline_ListsAndEventsAddUpToTheState(t *testing.T) {
	p, err := pipeline.New(nil)
	require.NoError(t, err)
	require.NoError(t, p.Replace([]states.Item{file("a", "1", 1), file("b", "1", 2)}, 2))
	require.NoError(t, p.Queue([]engine.Event[content.Item]{
		{Type: engine.Added, Object: file("c", "1", 3), Revision: 3},
		{Type: engine.Modified, Object: file("a", "2", 4), Revision: 4},
		{Type: engine.Deleted, Object: file("c", "1", 5), Revision: 5},
		{Type: engine.Bookmark, Revision: 6},
	}))
	require.NoError(t, p.Replace([]states.Item{file("a", "2", 4), file("d", "1", 7)}, 7))
	got, err := p.Finish()
	require.NoError(t, err)
	require.Empty(t, states.Difference(got, states.Of([]states.Item{file("a", "2", 4), file("d", "1", 7)})))
}

// The objects that the indexer refuses are missing in the state, and the error says why.
func TestPipeline_ReportsTheFirstErrorOfItsIndexer(t *testing.T) {
	p, err := pipeline.New(cache.Indexers[states.Item]{"version": func(o states.Item) ([]string, error) {
		if o.Value.Version == "" {
			return nil, fmt.Errorf("%s has no version", o.Key)
		}
		return []string{o.Value.Version}, nil
	}})
	require.NoError(t, err)
	require.NoError(t, p.Replace([]states.Item{file("a", "1", 1), file("b", "", 2), file("c", "", 3)}, 3))
	require.NoError(t, p.Queue([]engine.Event[content.Item]{{Type: engine.Added, Object: file("d", "1", 4), Revision: 4}}))
	got, err := p.Finish()
	require.ErrorContains(t, err, "b has no version")
	require.Empty(t, states.Difference(got, states.Of([]states.Item{file("a", "1", 1), file("d", "1", 4)})))
}
