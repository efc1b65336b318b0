package replay_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/trace"
)

func TestVia_EveryWatcherComesToTheFinalState(t *testing.T) {
	for _, via := range []load.Via{load.ViaInformer, load.ViaObjectCache, load.ViaQueue} {
		t.Run(via.String(), func(t *testing.T) {
			opts := replay.Options{File: shipped, Watchers: 6, Reconnect: 3, Seed: 1, Via: via}
			if via == load.ViaObjectCache { // which follows each object by itself
				opts.Select = "dir=actor"
			}
			report := replayed(t, opts)
			requireOK(t, report)
			require.Equal(t, 6, report.Equal)
			require.Equal(t, 18, report.Resumed)
			require.NotEmpty(t, report.State)
			require.Len(t, report.State, report.Objects)
		})
	}
}

// A handler gets all objects again when it comes back, and an object cache is not asked for each change.
func TestVia_DecidesWhatIsDelivered(t *testing.T) {
	var changes []trace.Change
	for i := range 20 {
		changes = append(changes, put("a", fmt.Sprint(i)))
	}
	file := writeTrace(t, t.TempDir(), changes...)
	delivered := func(via load.Via) (n uint64) {
		synctest.Test(t, func(t *testing.T) {
			report := replayed(t, replay.Options{File: file, Speed: 100, Watchers: 1, Reconnect: 1, Via: via})
			requireOK(t, report)
			n = report.Delivered
		})
		return n
	}
	require.EqualValues(t, 20, delivered(load.ViaWatch))
	require.EqualValues(t, 21, delivered(load.ViaInformer))
	require.Less(t, delivered(load.ViaObjectCache), uint64(10))
}

func TestVia_SelectsAndSeesDeletions(t *testing.T) {
	file := writeTrace(t, t.TempDir(), put("a/x.go", "1"), put("a/y.go", "1"), put("a", "1"), put("a/x.go", "2"), remove("a/y.go"))
	for _, via := range []load.Via{load.ViaInformer, load.ViaObjectCache, load.ViaQueue} {
		t.Run(via.String(), func(t *testing.T) {
			report := replayed(t, replay.Options{File: file, Watchers: 3, Select: "ext=go", Via: via})
			requireOK(t, report)
			require.Equal(t, 1, report.Objects)
			require.Equal(t, "2", report.State["a/x.go"])
		})
	}
}

func TestVia_QueuesOfSlowWatchersCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := replayed(t, replay.Options{File: shipped, Watchers: 4, Slow: 2, Reconnect: 2, Via: load.ViaQueue, Policy: engine.Conflate, Seed: 1})
		requireOK(t, report)
		require.Len(t, report.State, report.Objects)
	})
}

func TestVia_IsReadFromItsName(t *testing.T) {
	for _, name := range load.ViaNames {
		var read load.Via
		require.NoError(t, read.UnmarshalText([]byte(name)))
		require.Equal(t, name, read.String())
	}
	var via load.Via
	require.ErrorContains(t, via.UnmarshalText([]byte("telepathy")), "objectcache")
}
