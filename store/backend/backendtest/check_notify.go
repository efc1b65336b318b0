package backendtest

import (
	"fmt"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

var notifyChecks = []check{
	{"Contract_EveryEmptyBatchIsFollowedByANotification", func(r *rig) {
		f := r.follow("", r.revision())
		for i := range 20 {
			f.sees()
			o := r.create(fmt.Sprintf("k/%d", i), "x")
			f.await()
			f.sees(added(o))
		}
	}},
	{"Contract_NoNotificationIsLostBetweenGoroutines", func(r *rig) {
		// Each write races with the Next that finds it or does not; were its
		// notification lost, nothing later would make up for it.
		f := r.follow("", r.revision())
		for i := range 300 {
			ws := r.write(1, 1, fmt.Sprint(i))
			for len(f.next().Events) == 0 {
				f.await()
			}
			ws.wait(r)
		}
	}},
	{"Contract_ClosedWatchIsNotNotified", func(r *rig) {
		var calls atomic.Int32
		w, err := r.Backend.Watch(r.ctx, backend.WatchOptions{Notify: func() { calls.Add(1) }})
		require.NoError(r, err)
		_, err = w.Next(1)
		require.NoError(r, err)
		w.Close()
		w.Close()
		before := calls.Load()
		f := r.follow("", r.revision())
		f.sees()
		o := r.create("a", "x")
		f.await()
		f.sees(added(o))
		require.Equal(r, before, calls.Load(), "Notify was called after Close had returned")
		_, err = w.Next(1)
		r.fails(err, store.ErrClosed, "Next on a closed watch")
	}},
	{"Contract_SlowWatchDoesNotHoldUpWriters", func(r *rig) {
		start := r.revision()
		slow := r.follow("", start)
		slow.sees()
		var want []event
		for i := range 300 {
			want = append(want, added(r.create(fmt.Sprintf("k/%03d", i), "x")))
		}
		slow.sees(want...)
	}},
}
