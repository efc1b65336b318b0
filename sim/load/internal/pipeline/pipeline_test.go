package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/pipeline"
	"github.com/watchmill/watchmill/sim/load/internal/states"
)

func file(key, version string, rev engine.Revision) states.Item {
	return &engine.Object[content.Item]{Key: key, Value: content.Item{Key: key, Version: version}, Revision: rev}
}

func TestPipeline_ListsAndEventsAddUpToTheState(t *testing.T) {
	p, err := pipeline.New()
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
