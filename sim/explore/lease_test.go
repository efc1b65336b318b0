package explore

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store/backend"
)

// An object is deleted when its TTL has passed, also if the clock is corrected
// meanwhile, and the deletion is delivered like any other.
func TestObjectsExpire(t *testing.T) {
	cfg, err := Things().withDefaults()
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
		require.NoError(t, o.err)
		require.Nil(t, o.failure, "the clock jumps by %v", jump)
		require.Contains(t, strings.Join(lines, "\n"), "storage: expire: revision 3")
		require.Contains(t, strings.Join(lines, "\n"), "w0 gets DELETED")
	}
}

// leasing returns storage with an object that expires in a second.
func leasing(t *testing.T) (s *storage[Thing], clock *tracedClock, failed *error) {
	c := newTracedClock(&trace{})
	cfg := Things().Engine
	s, err := newStorage(&cfg, c, script.Setup{}, &trace{})
	require.NoError(t, err)
	failed = new(error)
	s.fail = func(err error) { *failed = err }
	_, err = s.Put(t.Context(), s.newObject("x", Thing{Key: "x"}), nil, backend.PutOptions{TTL: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, c, failed
}

func TestStorageThatDeletesTooEarlyIsFound(t *testing.T) {
	s, clock, failed := leasing(t)
	o, err := s.Get(t.Context(), "x")
	require.NoError(t, err)
	_, err = s.Unwrap().Remove(t.Context(), o) // behind the history's back
	require.NoError(t, err)
	clock.Advance(time.Second / 2)
	s.reap()
	require.Equal(t, judge.Expires, judge.Broken(*failed))
}

func TestStorageThatForgetsToDeleteIsFound(t *testing.T) {
	s, clock, failed := leasing(t)
	require.NoError(t, s.overdue())
	clock.Advance(time.Second)
	require.NoError(t, s.overdue(), "it was deleted")
	require.NoError(t, *failed)
	s.leases.set("y", clock.Now())
	require.Equal(t, judge.Expires, judge.Broken(s.overdue()))
	s.clockJumped = true
	require.NoError(t, s.overdue(), "unknown")
}
