package waiting_test

import (
	"runtime"
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
