package storage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/storage"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// newStorage makes a storage in which every write happens at 7.
func newStorage(t *testing.T, faults ...scenario.Fault) (*storage.Storage, *judge.Ledger) {
	t.Helper()
	ledger := &judge.Ledger{}
	plan := &scenario.Plan{Scenario: scenario.Scenario{Faults: faults}}
	s, err := storage.New(plan, storage.Memory(clock.Real()), func() int64 { return 7 }, ledger)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, ledger
}

// put writes an item.
func put(t *testing.T, s *storage.Storage, key string) store.Revision {
	t.Helper()
	o, err := s.Put(t.Context(), draft(key), nil, backend.PutOptions{})
	require.NoError(t, err)
	require.Equal(t, int64(7), content.Of(o).Stored)
	return o.Revision
}

// draft returns an item to write.
func draft(key string) *store.Object {
	return store.Header(&engine.Object[content.Item]{Key: key, Value: content.Item{Key: key, Attrs: &content.Attributes{}}})
}

func list(ctx context.Context, s *storage.Storage) error {
	_, err := s.List(ctx, backend.ListOptions{})
	return err
}

func TestWrites_AreStampedAndRecorded(t *testing.T) {
	s, ledger := newStorage(t)
	put(t, s, "a")
	put(t, s, "b")
	b, err := s.Get(t.Context(), "b")
	require.NoError(t, err)
	gone, err := s.Remove(t.Context(), b)
	require.NoError(t, err)
	_, err = s.Emit(t.Context(), draft("a"))
	require.NoError(t, err)
	newest, ok := ledger.Newest()
	require.True(t, ok)
	require.True(t, newest.Emitted)
	states := ledger.NewestByKey()
	require.Len(t, states, 2)
	require.False(t, states["a"].Deleted)
	require.False(t, states["a"].Emitted, "an emitted value is not state")
	require.True(t, states["b"].Deleted)
	require.Equal(t, gone.Revision, states["b"].Revision)
}

// A receiver gets the next write and none before: latency that is measured from then
// must not include the time before the receiver was ready.
func TestWrites_ReachAReceiverAtOnce(t *testing.T) {
	s, _ := newStorage(t)
	before := put(t, s, "a") // does not wait for other writes
	var told atomic.Pointer[judge.Entry]
	go func() {
		e := <-s.Writes()
		told.Store(&e)
	}()
	for n := 0; told.Load() == nil; n++ {
		put(t, s, fmt.Sprintf("b-%d", n))
		runtime.Gosched()
	}
	require.Greater(t, told.Load().Revision, before)
}

func TestFaults_HitTheCallsOfTheirCondition(t *testing.T) {
	s, _ := newStorage(t)
	require.NoError(t, list(t.Context(), s))
	fail := s.Begin(&scenario.Fault{Kind: scenario.FaultFail, When: scenario.During(scenario.OnList)})
	require.ErrorIs(t, list(t.Context(), s), storage.ErrInjected)
	put(t, s, "a")
	s.End(fail)
	require.NoError(t, list(t.Context(), s))
	require.Equal(t, uint64(1), fail.Hits())
}

// Which calls a random fault hits does not depend on those that were made before or
// between faults.
func TestFaults_CountTheCallsThatAreMadeWhileOneIsActive(t *testing.T) {
	struck := func(before, between int) (failed []bool) {
		s, _ := newStorage(t)
		for range before {
			require.NoError(t, list(t.Context(), s))
		}
		for range 2 {
			fail := s.Begin(&scenario.Fault{Kind: scenario.FaultFail, When: scenario.Randomly(0.5, 7)})
			for range 20 {
				failed = append(failed, list(t.Context(), s) != nil)
			}
			s.End(fail)
			for range between {
				require.NoError(t, list(t.Context(), s))
			}
		}
		return failed
	}
	want := struck(0, 0)
	require.Contains(t, want, true)
	require.Contains(t, want, false)
	require.NotEqual(t, want[:20], want[20:])
	require.Equal(t, want, struck(3, 5))
}

func TestWrites_ThatFailAreNotRecorded(t *testing.T) {
	s, ledger := newStorage(t)
	fail := s.Begin(&scenario.Fault{Kind: scenario.FaultFail})
	defer s.End(fail)
	_, err := s.Put(t.Context(), draft("a"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, storage.ErrInjected)
	_, ok := ledger.Newest()
	require.False(t, ok)
}

func TestFaults_HangingCallsEndWithTheFaultOrTheirContext(t *testing.T) {
	s, _ := newStorage(t)
	stick := s.Begin(&scenario.Fault{Kind: scenario.FaultStick})
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	require.ErrorIs(t, list(ctx, s), gone)
	met := make(chan error)
	go func() { met <- list(t.Context(), s) }()
	for stick.Hits() < 2 {
		runtime.Gosched()
	}
	s.End(stick)
	require.NoError(t, <-met)
	delay := s.Begin(&scenario.Fault{Kind: scenario.FaultDelay, Delay: time.Hour})
	defer s.End(delay)
	require.ErrorIs(t, list(ctx, s), gone)
}

func TestTraits_OnlyAStorageThatMayHangBlocks(t *testing.T) {
	s, _ := newStorage(t, scenario.Fault{Kind: scenario.FaultFail})
	require.False(t, s.Traits().Blocks)
	s, _ = newStorage(t, scenario.Fault{Kind: scenario.FaultDelay})
	require.True(t, s.Traits().Blocks)
}

// watched opens a watch and returns its notifications.
func watched(t *testing.T, s *storage.Storage, from store.Revision) (backend.Watcher, chan struct{}) {
	t.Helper()
	told := make(chan struct{}, 100)
	w, err := s.Watch(t.Context(), backend.WatchOptions{From: from, Notify: func() { told <- struct{}{} }})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	return w, told
}

func TestWatches_BreakAndExpire(t *testing.T) {
	s, _ := newStorage(t)
	rev := put(t, s, "a")
	w, told := watched(t, s, rev)
	require.Equal(t, 1, s.Break())
	<-told
	_, err := w.Next(10)
	require.ErrorIs(t, err, storage.ErrInjected)
	w.Close()
	require.Zero(t, s.Break(), "it is closed")

	w, told = watched(t, s, rev)
	require.Equal(t, 1, s.ExpireWatches())
	<-told
	_, err = w.Next(10)
	require.ErrorIs(t, err, store.ErrExpired)
}

// A watch whose Next hangs delivers nothing until the fault ends, and then loses
// nothing.
func TestFaults_AHangingWatchContinuesWhenTheFaultEnds(t *testing.T) {
	s, _ := newStorage(t)
	w, told := watched(t, s, put(t, s, "a"))
	batch, err := w.Next(10)
	require.NoError(t, err)
	require.Empty(t, batch.Events)
	stick := s.Begin(&scenario.Fault{Kind: scenario.FaultStick, When: scenario.During(scenario.OnNext)})
	rev := put(t, s, "b")
	<-told
	batch, err = w.Next(10)
	require.NoError(t, err)
	require.Empty(t, batch.Events)
	s.End(stick)
	<-told
	batch, err = w.Next(10)
	require.NoError(t, err)
	require.Len(t, batch.Events, 1)
	require.Equal(t, rev, batch.Through)
}

// A delay of all calls does not delay open watches, and does not count them.
func TestFaults_ADelayDoesNotHitAnOpenWatch(t *testing.T) {
	s, _ := newStorage(t)
	w, _ := watched(t, s, put(t, s, "a"))
	delay := s.Begin(&scenario.Fault{Kind: scenario.FaultDelay})
	defer s.End(delay)
	_, err := w.Next(10)
	require.NoError(t, err)
	require.Zero(t, delay.Hits())
	require.NoError(t, list(t.Context(), s))
	require.Equal(t, uint64(1), delay.Hits())
}

// Events that the engine skipped by a list are a gap, which nothing has to deliver.
func TestLedger_HasAGapWhereAWatchStartsFurtherOn(t *testing.T) {
	s, ledger := newStorage(t)
	from := put(t, s, "a")
	w, _ := watched(t, s, from)
	w.Close()
	put(t, s, "b")
	put(t, s, "c")
	require.NoError(t, s.Forget(t.Context()))
	_, _ = watched(t, s, put(t, s, "d"))
	last := put(t, s, "e")

	var seen judge.Trail[content.Item]
	seen.Begin(from)
	seen.Reach(last)
	seen.End()
	everything := func(yield func(judge.Selection) bool) { yield(judge.Selection{}) }
	expected := judge.Expect(everything, ledger)
	require.Len(t, expected.Revisions(judge.Selection{}), 5)
	require.Equal(t, uint64(1), seen.Judge(expected, judge.Selection{}).Lost, "e alone")
}
