package backendtest

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

var watchChecks = []check{
	{"Watch_ShowsEachChange", func(x *fixture) {
		all, under, one := x.follow("", x.revision()), x.follow("a", x.revision()), x.follow("a/1", x.revision())
		a1 := x.create("a/1", "1")
		b1 := x.create("b/1", "1")
		ab := x.create("ab", "1")
		a2 := x.create("a/2", "1")
		a1b := x.update(a1, "2")
		b1b := x.update(b1, "2")
		gone := x.remove(a1b)
		all.sees(added(a1), added(b1), added(ab), added(a2), modified(a1, a1b), modified(b1, b1b), deleted(a1b, gone))
		under.sees(added(a1), added(a2), modified(a1, a1b), deleted(a1b, gone))
		one.sees(added(a1), modified(a1, a1b), deleted(a1b, gone))
		again := x.create("a/1", "3")
		one.sees(added(again))
	}},
	{"Watch_FromEachRevisionShowsTheRest", func(x *fixture) {
		start := x.revision()
		a := x.create("a", "1")
		a2 := x.update(a, "2")
		b := x.create("b", "1")
		gone := x.remove(a2)
		events := []event{added(a), modified(a, a2), added(b), deleted(a2, gone)}
		for i, from := range []store.Revision{start, a.Revision, a2.Revision, b.Revision, gone.Revision} {
			x.follow("", from).sees(events[i:]...)
		}
		f := x.follow("", 0)
		f.sees()
		f.sees(added(x.create("c", "1")))
	}},
	{"Watch_BatchesKeepToTheirBound", func(x *fixture) {
		start := x.revision()
		var want []event
		for i := range 20 {
			want = append(want, added(x.create(fmt.Sprintf("%s/%02d", []string{"even", "odd"}[i%2], i), "x")))
		}
		for _, limit := range []int{-1, 0, 1, 2, 3, 7, 20, 1000} {
			f := x.follow("", start)
			f.limit = limit
			f.sees(want...)
			f = x.follow("odd", start)
			f.limit = limit
			require.Len(x, f.until(want[19].Revision), 10)
		}
	}},
	{"Watch_ContextBoundsOnlyTheStart", func(x *fixture) {
		ctx, cancel := context.WithCancelCause(x.ctx)
		f := &follower{fixture: x, notified: make(chan struct{}, 1), limit: 10}
		w, err := x.Backend.Watch(ctx, backend.WatchOptions{Notify: f.notify})
		require.NoError(x, err)
		f.watcher = w
		f.sees()
		cancel(errDone)
		f.sees(added(x.create("a", "x")))
		_, err = x.Backend.Watch(ctx, backend.WatchOptions{Notify: f.notify})
		x.fails(err, errDone, "Watch with a done context")
	}},
	{"Watch_FromTheFutureFails", func(x *fixture) {
		now := x.create("a", "x").Revision
		for _, from := range future(now) {
			_, err := x.Backend.Watch(x.ctx, backend.WatchOptions{From: from, Notify: func() {}})
			x.fails(err, store.ErrFuture, "Watch from revision %d of %d", from, now)
		}
		_, err := x.Backend.Watch(x.ctx, backend.WatchOptions{From: now})
		x.fails(err, usercode.ErrConfig, "Watch without Notify")
	}},
	{"Watch_ProgressIsNotHeldUpByOtherKeys", func(x *fixture) {
		f := x.follow("mine", x.revision())
		f.sees()
		other := x.create("other", "x")
		if x.Backend.Traits().Contiguous {
			require.Empty(x, f.until(other.Revision), "nothing happened under the prefix")
		}
		mine := x.create("mine", "x")
		x.create("other/2", "x")
		f.sees(added(mine))
	}},
	{"Watch_NoGapAndNoDuplicateAmongConcurrentWriters", func(x *fixture) {
		start := x.revision()
		f, late := x.follow("", start), x.follow("", start)
		f.limit = 3
		writers := x.write(4, 50, "w")
		var seen []event
		for len(seen) < writers.total {
			batch := f.next()
			seen = append(seen, batch.Events...)
			if len(batch.Events) == 0 && len(seen) < writers.total {
				f.await()
			}
		}
		wrote := writers.wait(x)
		require.Equal(x, wrote, revisionsOf(seen), "what was written, and what was seen while it was")
		require.Equal(x, texts(seen), texts(late.until(f.through)), "what is seen afterwards")
	}},
	{"Watch_BehindAListRebuildsTheState", func(x *fixture) {
		x.mixture(0, 30)
		l := x.list(backend.ListOptions{})
		f := x.follow("", l.Revision)
		state := described(l.Items)
		for round := 1; round <= 3; round++ {
			x.mixture(round, 30)
			replay(state, f.until(x.revision()))
			now := described(x.list(backend.ListOptions{}).Items)
			require.Equal(x, now, state, "state rebuilt from events, after round %d", round)
		}
	}},
	{"Contract_StateOfABatchIsThatBehindItsEvents", func(x *fixture) {
		f := x.followBy(backend.WatchOptions{From: x.revision(), State: true})
		f.limit = 7
		state := map[string]string{}
		for round := range 4 {
			x.mixture(round, 30)
			f.rebuilds(state, x.revision(), func() {})
			_, inMemory := x.Backend.(backend.Historian)
			require.False(x, inMemory && f.state == nil, "storage in memory gives its state with the newest events")
		}
	}},
	{"Contract_PrevIsThereOnceTheStateIsGiven", func(x *fixture) {
		f := x.followBy(backend.WatchOptions{From: x.revision(), State: true, NoPrev: true})
		f.limit, f.noPrev = 7, true
		state := map[string]string{}
		for round := range 4 {
			x.mixture(round, 30)
			f.rebuilds(state, x.revision(), func() { f.noPrev = false }) // then no event lacks the state before it
		}
	}},
	{"Contract_StateIsLeftOutForNoMoreEventsThanAllowed", func(x *fixture) {
		const allowed = 20
		f := x.followBy(backend.WatchOptions{From: x.revision(), State: true, StateEvery: allowed})
		without := 0
		for round := range 9 {
			x.mixture(round, 7)
			without += len(f.until(x.revision()))
			if f.state != nil {
				without = 0
			}
			_, inMemory := x.Backend.(backend.Historian)
			require.False(x, inMemory && without > allowed, "%d events came without the state", without)
		}
	}},
	{"Contract_EmittedValuesAreNotState", func(x *fixture) {
		emitter, ok := x.Backend.(backend.Emitter)
		if !ok {
			x.inapplicable("the backend is not a backend.Emitter")
			return
		}
		a := x.create("a", "x")
		f := x.follow("", a.Revision)
		f.sees()
		sent, err := emitter.Emit(x.ctx, draft("a", "passing"))
		require.NoError(x, err)
		require.Greater(x, sent.Revision, a.Revision, "an emission has a revision of its own")
		f.await()
		f.sees(event{Type: store.Emitted, Revision: sent.Revision, Object: sent})
		x.holds(a)
		x.lists(backend.ListOptions{Revision: sent.Revision}, a)
		f.sees(modified(a, x.update(a, "y")))
		_, err = emitter.Emit(x.ctx, draft("a//b", ""))
		x.fails(err, store.ErrInvalidKey, "emission under a bad key")
	}},
}

// mixture creates, updates and removes objects in a pattern that depends on round.
func (x *fixture) mixture(round, n int) {
	x.Helper()
	for i := range n {
		key := fmt.Sprintf("m/%d", (i*7+round*3)%11)
		o, err := x.Backend.Get(x.ctx, key)
		switch {
		case err != nil:
			x.create(key, fmt.Sprint(round, i))
		case (i+round)%3 == 0:
			x.remove(o)
		default:
			x.update(o, fmt.Sprint(round, i))
		}
	}
}

// described returns a state by key, as text.
func described(objects []*object) map[string]string {
	state := map[string]string{}
	for _, o := range objects {
		state[o.Key] = describe(o)
	}
	return state
}

// replay applies events to a state of described objects.
func replay(state map[string]string, events []event) {
	for _, ev := range events {
		switch ev.Type {
		case store.Added, store.Modified:
			state[ev.Key()] = describe(ev.Object)
		case store.Deleted:
			delete(state, ev.Key())
		}
	}
}

func revisionsOf(events []event) []store.Revision {
	revisions := make([]store.Revision, 0, len(events))
	for _, ev := range events {
		revisions = append(revisions, ev.Revision)
	}
	return revisions
}

var notifyChecks = []check{
	{"Contract_EveryEmptyBatchIsFollowedByANotification", func(x *fixture) {
		f := x.follow("", x.revision())
		for i := range 20 {
			f.sees()
			o := x.create(fmt.Sprintf("k/%d", i), "x")
			f.await()
			f.sees(added(o))
			next := x.update(o, "y")
			f.await()
			f.sees(modified(o, next))
			gone := x.remove(next)
			f.await()
			f.sees(deleted(next, gone))
		}
	}},
	{"Contract_NoNotificationIsLostBetweenGoroutines", func(x *fixture) {
		// Each write races with a Next that may or may not find it. Nothing later
		// would replace a notification that is lost.
		f := x.follow("", x.revision())
		for i := range 300 {
			ws := x.write(1, 1, fmt.Sprint(i))
			for len(f.next().Events) == 0 {
				f.await()
			}
			ws.wait(x)
		}
	}},
	{"Contract_ClosedWatchIsNotNotified", func(x *fixture) {
		var calls atomic.Int32
		w, err := x.Backend.Watch(x.ctx, backend.WatchOptions{Notify: func() { calls.Add(1) }})
		require.NoError(x, err)
		_, err = w.Next(1)
		require.NoError(x, err)
		w.Close()
		w.Close()
		before := calls.Load()
		f := x.follow("", x.revision())
		f.sees()
		o := x.create("a", "x")
		f.await()
		f.sees(added(o))
		require.Equal(x, before, calls.Load(), "Notify was called after Close had returned")
		_, err = w.Next(1)
		x.fails(err, store.ErrClosed, "Next on a closed watch")
	}},
	{"Contract_SlowWatchDoesNotHoldUpWriters", func(x *fixture) {
		start := x.revision()
		slow := x.follow("", start)
		slow.sees()
		var want []event
		for i := range 300 {
			want = append(want, added(x.create(fmt.Sprintf("k/%03d", i), "x")))
		}
		slow.sees(want...)
	}},
}
