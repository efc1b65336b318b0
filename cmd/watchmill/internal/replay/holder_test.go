package replay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
)

func TestEveryHolderOfReferencesComesToTheFinalState(t *testing.T) {
	report := replayed(t, replay.Options{File: shipped, Watchers: 6, Reconnect: 2, Seed: 1, Select: "dir=actor", Via: replay.ViaObjectCache})
	requireOK(t, report)
	require.Equal(t, 6, report.Equal)
	require.Equal(t, 12, report.Resumed)
	require.NotEmpty(t, report.State)
	require.Len(t, report.State, report.Objects)
}

func TestHoldersSelectAndSeeDeletions(t *testing.T) {
	file := writeTrace(t, t.TempDir(), put("a/x.go", "1"), put("a/y.go", "1"), put("a", "1"), put("a/x.go", "2"), remove("a/y.go"))
	report := replayed(t, replay.Options{File: file, Watchers: 3, Select: "ext=go", Via: replay.ViaObjectCache})
	requireOK(t, report)
	require.Equal(t, 1, report.Objects)
	require.Equal(t, "2", report.State["a/x.go"])
}

func TestViaIsReadFromItsName(t *testing.T) {
	for _, via := range []replay.Via{replay.ViaWatch, replay.ViaObjectCache, replay.ViaInformer} {
		var read replay.Via
		require.NoError(t, read.UnmarshalText([]byte(via.String())))
		require.Equal(t, via, read)
	}
	var via replay.Via
	require.ErrorContains(t, via.UnmarshalText([]byte("telepathy")), "objectcache")
}
