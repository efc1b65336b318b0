package waiting_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
	"github.com/watchmill/watchmill/usercode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// add makes n followers wait, each with its notify.
func add(l *waiting.List, notify ...func()) (followers []*waiting.Follower) {
	for _, fn := range notify {
		f := &waiting.Follower{}
		f.Init(fn)
		l.Add(f)
		followers = append(followers, f)
	}
	return followers
}

func TestWakeAll_NotifiesEachOnce(t *testing.T) {
	for n := range 4 {
		var list waiting.List
		counts := make([]int, n)
		for i := range n {
			add(&list, func() { counts[i]++ })
		}
		waiting.WakeAll(list.Take())
		waiting.WakeAll(list.Take())
		for _, count := range counts {
			require.Equal(t, 1, count)
		}
	}
}

// A panic ends the watch that it is of, and the end of the goroutine no watch.
func TestWakeAll_NotifiesThoseBehindUserCodeThatFails(t *testing.T) {
	var list waiting.List
	notified := 0
	count := func() { notified++ }
	followers := add(&list, count, func() { panic("oops") }, count, runtime.Goexit, count, runtime.Goexit, count)
	var goroutine sync.WaitGroup
	goroutine.Go(func() { waiting.WakeAll(list.Take()) })
	goroutine.Wait()
	require.Equal(t, 4, notified)
	for i, f := range followers {
		if i == 1 {
			require.ErrorIs(t, f.Ended(), usercode.ErrPanic)
		} else {
			require.NoError(t, f.Ended())
		}
	}
}

func TestFollower_IsNotNotifiedOnceClosed(t *testing.T) {
	var list waiting.List
	var mu sync.Mutex
	notified := 0
	count := func() { notified++ }
	followers := add(&list, count, count, count)
	followers[0].Close(&mu, &list)
	waiting.WakeAll(list.Take())
	require.Equal(t, 2, notified)
	list.Add(followers[0])
	require.Empty(t, list.Take())
	require.ErrorIs(t, followers[0].Ended(), store.ErrClosed)
}

// A watch that is closed while it does not wait takes no other from the list.
func TestFollower_IsClosedWhetherItWaitsOrNot(t *testing.T) {
	var list waiting.List
	var mu sync.Mutex
	nothing := func() {}
	followers := add(&list, nothing, nothing, nothing)
	list.Take()
	list.Add(followers[1])
	list.Add(followers[2])
	for range 2 {
		followers[0].Close(&mu, &list)
	}
	require.Equal(t, followers[1:], list.Take())
}

// Whatever comes and goes, those wait that came and were neither taken nor closed.
func TestList_HasThoseThatWait(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		var list waiting.List
		var mu sync.Mutex
		followers := add(&list, make([]func(), 6)...)
		waits, closed := map[*waiting.Follower]bool{}, map[*waiting.Follower]bool{}
		for _, f := range followers {
			waits[f] = true
		}
		for range 30 {
			f := followers[random.IntN(len(followers))]
			switch n := random.IntN(10); {
			case n == 0:
				f.Close(&mu, &list)
				delete(waits, f)
				closed[f] = true
			case n < 3:
				require.ElementsMatch(t, slices.Collect(maps.Keys(waits)), list.Take())
				clear(waits)
			default:
				list.Add(f)
				if !closed[f] {
					waits[f] = true
				}
			}
		}
	}
}

// The usual case, one watch that is a cache's, costs no memory.
func TestList_OfOneAllocatesNothing(t *testing.T) {
	var list waiting.List
	f := add(&list, func() {})[0]
	require.Zero(t, testing.AllocsPerRun(10, func() {
		waiting.WakeAll(list.Take())
		list.Add(f)
	}))
}

// The first reason for which a watch ends is the one that it tells.
func TestFollower_TellsWhyItEnded(t *testing.T) {
	var list waiting.List
	var mu sync.Mutex
	gone := errors.New("gone")
	f := add(&list, func() { t.Error("it has ended") })[0]
	require.NoError(t, f.Ended())
	require.ErrorIs(t, f.Fail(gone), gone)
	f.Wake()
	f.Close(&mu, &list)
	require.ErrorIs(t, f.Ended(), gone)
	require.ErrorIs(t, f.Fail(store.ErrClosed), gone)
}

// Once Close has returned, nothing of a consumer runs any more.
func TestFollower_CloseWaitsForItsNotification(t *testing.T) {
	var list waiting.List
	var mu sync.Mutex
	begun, notified := make(chan struct{}), false
	f := add(&list, func() {
		close(begun)
		for range 100 {
			runtime.Gosched()
		}
		notified = true
	})[0]
	var goroutine sync.WaitGroup
	goroutine.Go(func() { waiting.WakeAll([]*waiting.Follower{f}) })
	<-begun
	f.Close(&mu, &list)
	require.True(t, notified)
	require.True(t, mu.TryLock(), "nor is the backend's lock held")
	goroutine.Wait()
}
