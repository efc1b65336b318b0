package backendtest

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

var watchChecks = []check{
	{"Watch_ShowsEachChange", func(r *rig) {
		all, under, one := r.follow("", r.revision()), r.follow("a", r.revision()), r.follow("a/1", r.revision())
		a1 := r.create("a/1", "1")
		b1 := r.create("b/1", "1")
		ab := r.create("ab", "1")
		a2 := r.create("a/2", "1")
		a1b := r.update(a1, "2")
		b1b := r.update(b1, "2")
		gone := r.remove(a1b)
		all.sees(added(a1), added(b1), added(ab), added(a2), modified(a1, a1b), modified(b1, b1b), deleted(a1b, gone))
		under.sees(added(a1), added(a2), modified(a1, a1b), deleted(a1b, gone))
		one.sees(added(a1), modified(a1, a1b), deleted(a1b, gone))
		again := r.create("a/1", "3")
		one.sees(added(again))
	}},
	{"Watch_FromEachRevisionShowsTheRest", func(r *rig) {
		start := r.revision()
		a := r.create("a", "1")
		a2 := r.update(a, "2")
		b := r.create("b", "1")
		gone := r.remove(a2)
		events := []event{added(a), modified(a, a2), added(b), deleted(a2, gone)}
		for i, from := range []store.Revision{start, a.Revision, a2.Revision, b.Revision, gone.Revision} {
			r.follow("", from).sees(events[i:]...)
		}
		f := r.follow("", 0)
		f.sees()
		f.sees(added(r.create("c", "1")))
	}},
	{"Watch_BatchesKeepToTheirBound", func(r *rig) {
		start := r.revision()
		var want []event
		for i := range 20 {
			want = append(want, added(r.create(fmt.Sprintf("%s/%02d", []string{"even", "odd"}[i%2], i), "x")))
		}
		for _, limit := range []int{1, 2, 3, 7, 20, 1000} {
			f := r.follow("", start)
			f.max = limit
			f.sees(want...)
			f = r.follow("odd", start)
			f.max = limit
			require.Len(r, f.until(want[19].Revision), 10)
		}
	}},
	{"Watch_ContextBoundsOnlyTheStart", func(r *rig) {
		ctx, cancel := context.WithCancel(r.ctx)
		f := &follower{rig: r, notified: make(chan struct{}, 1), max: 10}
		w, err := r.Backend.Watch(ctx, backend.WatchOptions{Notify: f.notify})
		require.NoError(r, err)
		f.watcher = w
		f.sees()
		cancel()
		f.sees(added(r.create("a", "x")))
		_, err = r.Backend.Watch(ctx, backend.WatchOptions{Notify: f.notify})
		r.fails(err, context.Canceled, "Watch with a done context")
	}},
	{"Watch_FromTheFutureFails", func(r *rig) {
		now := r.create("a", "x").Revision
		_, err := r.Backend.Watch(r.ctx, backend.WatchOptions{From: now + 1, Notify: func() {}})
		r.fails(err, store.ErrFuture, "Watch from revision %d of %d", now+1, now)
		_, err = r.Backend.Watch(r.ctx, backend.WatchOptions{From: now})
		r.fails(err, usercode.ErrConfig, "Watch without Notify")
	}},
	{"Watch_ProgressIsNotHeldUpByOtherKeys", func(r *rig) {
		f := r.follow("mine", r.revision())
		f.sees()
		other := r.create("other", "x")
		if r.Backend.Traits().Contiguous {
			require.Empty(r, f.until(other.Revision), "nothing happened under the prefix")
		}
		mine := r.create("mine", "x")
		r.create("other/2", "x")
		f.sees(added(mine))
	}},
	{"Watch_NoGapAndNoDuplicateAmongConcurrentWriters", func(r *rig) {
		start := r.revision()
		f, late := r.follow("", start), r.follow("", start)
		f.max = 3
		writers := r.write(4, 50, "w")
		var seen []event
		for len(seen) < writers.total {
			batch := f.next()
			seen = append(seen, batch.Events...)
			if len(batch.Events) == 0 && len(seen) < writers.total {
				f.await()
			}
		}
		wrote := writers.wait(r)
		require.Equal(r, wrote, revisionsOf(seen), "what was written, and what was seen while it was")
		require.Equal(r, texts(seen), texts(late.until(f.through)), "what is seen afterwards")
	}},
	{"Watch_BehindAListRebuildsTheState", func(r *rig) {
		r.mixture(0, 30)
		l := r.list(backend.ListOptions{})
		f := r.follow("", l.Revision)
		state := described(l.Items)
		for round := 1; round <= 3; round++ {
			r.mixture(round, 30)
			replay(state, f.until(r.revision()))
			now := described(r.list(backend.ListOptions{}).Items)
			require.Equal(r, now, state, "state rebuilt from events, after round %d", round)
		}
	}},
	{"Contract_StateOfABatchIsThatBehindItsEvents", func(r *rig) {
		f := r.followBy(backend.WatchOptions{From: r.revision(), State: true})
		f.max = 7
		state := map[string]string{}
		for round := range 4 {
			r.mixture(round, 30)
			newest := r.revision()
			for f.through < newest {
				batch := f.next()
				replay(state, batch.Events)
				if batch.State != nil {
					require.Equal(r, state, described(batch.State.AppendTo(nil, "")), "at revision %d", batch.Through)
				}
				if len(batch.Events) == 0 && f.through < newest {
					f.await()
				}
			}
			_, inMemory := r.Backend.(backend.Historian)
			require.False(r, inMemory && f.state == nil, "storage in memory gives its state with the newest events")
		}
	}},
	{"Contract_EmittedValuesAreNotState", func(r *rig) {
		emitter, ok := r.Backend.(backend.Emitter)
		if !ok {
			return // it does not say that it can
		}
		a := r.create("a", "x")
		f := r.follow("", a.Revision)
		sent, err := emitter.Emit(r.ctx, draft("a", "passing"))
		require.NoError(r, err)
		require.Greater(r, sent.Revision, a.Revision, "an emission has a revision of its own")
		f.sees(event{Type: store.Emitted, Revision: sent.Revision, Object: sent})
		r.holds(a)
		r.lists(backend.ListOptions{Revision: sent.Revision}, a)
		f.sees(modified(a, r.update(a, "y")))
		_, err = emitter.Emit(r.ctx, draft("a//b", ""))
		r.fails(err, store.ErrInvalidKey, "emission under a bad key")
	}},
}

// mixture creates, updates and removes objects in a pattern given by round.
func (r *rig) mixture(round, n int) {
	r.Helper()
	for i := range n {
		key := fmt.Sprintf("m/%d", (i*7+round*3)%11)
		o, err := r.Backend.Get(r.ctx, key)
		switch {
		case err != nil:
			r.create(key, fmt.Sprint(round, i))
		case (i+round)%3 == 0:
			r.remove(o)
		default:
			r.update(o, fmt.Sprint(round, i))
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
