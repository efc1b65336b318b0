package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
)

func TestEveryListenerAndListerComesToTheFinalState(t *testing.T) {
	report := replayed(t, replay.Options{File: shipped, Watchers: 6, Reconnect: 3, Seed: 1, Via: replay.ViaInformer})
	requireOK(t, report)
	require.Equal(t, 6, report.Equal)
	require.Equal(t, 18, report.Resumed)
	require.Len(t, report.State, report.Objects)
}

func TestListenersSelectAndSeeDeletions(t *testing.T) {
	file := writeTrace(t, t.TempDir(), put("a/x.go", "1"), put("a/y.go", "1"), put("a", "1"), put("a/x.go", "2"), remove("a/y.go"))
	report := replayed(t, replay.Options{File: file, Watchers: 3, Select: "ext=go", Via: replay.ViaInformer})
	requireOK(t, report)
	require.Equal(t, 1, report.Objects)
	require.Equal(t, "2", report.State["a/x.go"])
}
