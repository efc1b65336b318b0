package world

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
)

// drawn returns the scenario of a seed.
func drawn(cfg Config[Thing], seed uint64) script.Scenario {
	return script.Draw(seed, len(cfg.Selections), 200)
}

// The seed decides the interleaving: the same steps with other seeds are other executions,
// and in all of them the invariants hold.
func TestPlay_OneScenarioInManyInterleavings(t *testing.T) {
	cfg, err := Things().WithDefaults()
	require.NoError(t, err)
	s := drawn(cfg, 7)
	hashes := map[uint64]bool{}
	for seed := range uint64(20) {
		s.Seed = seed
		o := simulate(&cfg, s, seams[Thing]{}, nil)
		require.Nil(t, o.Failure, "seed %d", seed)
		hashes[o.Hash] = true
	}
	require.Len(t, hashes, 20)
}

// An object is deleted when its TTL has passed, even if the clock is corrected
// meanwhile, and the deletion is delivered like any other.
func TestPlay_ObjectsExpire(t *testing.T) {
	cfg, err := Things().WithDefaults()
	require.NoError(t, err)
	for _, jump := range []time.Duration{0, time.Hour, -time.Second} {
		var lines []string
		o := simulate(&cfg, script.Scenario{
			Setup: script.Setup{Window: engine.Window{MinAge: time.Minute, MaxEvents: 100, ChunkSize: 4}, BookmarkPeriod: time.Minute},
			Steps: []script.Step{
				{Do: script.Watch, Turns: script.Unlimited, Start: &script.Start{Options: engine.WatchOptions{InitialState: true}}},
				{Do: script.Lease, For: 10 * time.Second},
				{Do: script.Jump, For: jump},
				{Do: script.Pass, N: 6, For: 10 * time.Second},
			},
		}, seams[Thing]{}, func(line string) { lines = append(lines, line) })
		require.NoError(t, o.Err)
		require.Nil(t, o.Failure, "the clock jumps by %v", jump)
		require.Contains(t, strings.Join(lines, "\n"), "storage: expire: revision 3")
		require.Contains(t, strings.Join(lines, "\n"), "w0 gets DELETED")
	}
}

// A stored value may differ from the one that was to be written by what the configuration adds to it,
// which its Equal need not ignore.
func TestPlay_ConfigMayAddToValues(t *testing.T) {
	for what, add := range map[string]func(*engine.Config[Thing]){
		"the revision": func(c *engine.Config[Thing]) {
			c.SetRevision = func(o Thing, rev engine.Revision) Thing {
				o.N = uint32(rev)
				return o
			}
		},
		"something of the context": func(c *engine.Config[Thing]) {
			c.Carry = func(_ context.Context, o Thing) Thing {
				o.N++
				return o
			}
		},
	} {
		cfg, err := Things().WithDefaults()
		require.NoError(t, err)
		add(&cfg.Engine)
		for seed := range uint64(20) {
			o := simulate(&cfg, drawn(cfg, seed), seams[Thing]{}, nil)
			require.NoError(t, o.Err)
			require.Nil(t, o.Failure, "%s, seed %d", what, seed)
		}
	}
}

// Watches and lists request everything if the configuration has no selections, and an
// invalid configuration is an error.
func TestPlay_ConfigGetsItsDefaults(t *testing.T) {
	cfg := Things()
	cfg.Selections = nil
	o := Play(&cfg, script.Scenario{Steps: []script.Step{
		{Do: script.Write, Turns: script.Unlimited},
		{Do: script.List, Turns: script.Unlimited},
		{Do: script.Watch, Turns: script.Unlimited, Start: &script.Start{Options: engine.WatchOptions{InitialState: true}}},
	}}, nil)
	require.NoError(t, o.Err)
	require.Nil(t, o.Failure)
	require.NotZero(t, o.Deliveries)
	cfg.Draw = nil
	o = Play(&cfg, script.Scenario{}, nil)
	require.ErrorIs(t, o.Err, engine.ErrConfig)
}
