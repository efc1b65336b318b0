package storage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store/backend"
)

// leasing returns storage with an object that expires in a second.
func leasing(t *testing.T) (s *Storage[string], clock *execution.Clock, failed *error) {
	c := execution.NewClock(&execution.Trace{})
	cfg := engine.Config[string]{Key: func(key string) string { return key }}
	s, err := New(&cfg, c, script.Setup{}, &execution.Trace{})
	require.NoError(t, err)
	failed = new(error)
	s.Fail = func(err error) { *failed = err }
	_, err = s.Put(t.Context(), s.newObject("x", "x"), nil, backend.PutOptions{TTL: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, c, failed
}

func TestLease_StorageThatDeletesTooEarlyIsFound(t *testing.T) {
	s, clock, failed := leasing(t)
	o, err := s.Get(t.Context(), "x")
	require.NoError(t, err)
	_, err = s.Unwrap().Remove(t.Context(), o) // behind the history's back
	require.NoError(t, err)
	clock.Advance(time.Second / 2)
	s.reap()
	require.Equal(t, judge.Expires, judge.Broken(*failed))
}

func TestLease_StorageThatForgetsToDeleteIsFound(t *testing.T) {
	s, clock, failed := leasing(t)
	require.NoError(t, s.Overdue())
	clock.Advance(time.Second)
	require.NoError(t, s.Overdue(), "it was deleted")
	require.NoError(t, *failed)
	s.leases.set("y", clock.Now())
	require.Equal(t, judge.Expires, judge.Broken(s.Overdue()))
	s.ClockJumped = true
	require.NoError(t, s.Overdue(), "unknown")
}
