package content_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
)

func TestMaker_ItemsAreAsTheScenarioSays(t *testing.T) {
	o := &scenario.Objects{
		Count: 10, Namespaces: 3, Size: scenario.Size{Min: 5, Max: 7},
		Fields: map[string]int{"node": 4}, Labels: map[string]int{"app": 2},
	}
	m, again := content.NewMaker(o, 7, 1), content.NewMaker(o, 7, 1)
	shared := map[*content.Attributes]bool{}
	for n := range 100 {
		it := m.Object(n)
		require.Equal(t, it, again.Object(n), "one seed, one object")
		require.Equal(t, o.Key(n), it.Key)
		require.Contains(t, []string{"node-0", "node-1", "node-2", "node-3"}, it.Attrs.Fields["node"])
		require.Contains(t, []string{"app-0", "app-1"}, it.Attrs.Labels["app"])
		require.True(t, len(it.Payload) >= 5 && len(it.Payload) <= 7)
		shared[it.Attrs] = true
	}
	require.Len(t, shared, 8, "equal attributes are shared")
}

func TestMaker_FilesHaveTheirDirectoryAndExtension(t *testing.T) {
	m := content.NewMaker(&scenario.Objects{}, 1, 1)
	file := m.File("cmd/tool/main.go", "1")
	require.Equal(t, "cmd/tool", file.Attrs.Fields["dir"])
	require.Equal(t, "go", file.Attrs.Fields["ext"])
	require.Same(t, file.Attrs, m.File("cmd/tool/doc.go", "2").Attrs)
	require.Equal(t, ".", m.File("LICENSE", "1").Attrs.Fields["dir"])
}
