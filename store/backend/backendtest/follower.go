package backendtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// follower reads a watch as its consumer does, and finds fault with everything
// in it that can be judged without knowing what was written.
type follower struct {
	*rig
	watcher backend.Watcher
	prefix  string
	// notified has a token after a notification.
	notified chan struct{}
	// max is what Next is called with.
	max int
	// noPrev: the watch may leave out the state before each event.
	noPrev bool

	started bool
	// through and state are those of the last batch.
	through store.Revision
	state   *store.TreeView
}

// follow watches the keys under prefix after revision from.
func (r *rig) follow(prefix string, from store.Revision) *follower {
	r.Helper()
	return r.followBy(backend.WatchOptions{Prefix: prefix, From: from})
}

// followBy watches as the options say, of which it fills in Notify.
func (r *rig) followBy(opts backend.WatchOptions) *follower {
	r.Helper()
	prefix, from := opts.Prefix, opts.From
	f := &follower{rig: r, prefix: prefix, notified: make(chan struct{}, 1), max: 100}
	opts.Notify = f.notify
	w, err := r.Backend.Watch(r.ctx, opts)
	require.NoError(r, err, "Watch %q from revision %d", prefix, from)
	f.watcher = w
	if from != 0 {
		f.started, f.through = true, from
	}
	return f
}

// notify is the watch's: it leaves a token, unless there is one.
func (f *follower) notify() {
	select {
	case f.notified <- struct{}{}:
	default:
	}
}

// until reads until everything up to rev was delivered, and returns the events.
func (f *follower) until(rev store.Revision) []event {
	f.Helper()
	var events []event
	for !f.started || f.through < rev {
		batch := f.next()
		events = append(events, batch.Events...)
		if len(batch.Events) == 0 && f.through < rev {
			f.await()
		}
	}
	return events
}

// drain reads until there is nothing more.
func (f *follower) drain() (events []event) {
	f.Helper()
	for {
		batch := f.next()
		if len(batch.Events) == 0 {
			return events
		}
		events = append(events, batch.Events...)
	}
}

// await waits for the notification that an empty batch promises.
func (f *follower) await() {
	f.Helper()
	patience := time.NewTimer(f.Patience)
	defer patience.Stop()
	select {
	case <-f.notified:
	case <-patience.C:
		require.Fail(f, "Notify was not called", "after an empty batch through revision %d, within %v", f.through, f.Patience)
	}
}

// next reads one batch and judges it.
func (f *follower) next() backend.Batch {
	f.Helper()
	batch, err := f.watcher.Next(f.max)
	require.NoError(f, err, "Next")
	f.judgeLength(batch)
	if f.started {
		require.Equal(f, f.through, batch.After, "the batch must join the one before (or the start of the watch)")
	}
	require.GreaterOrEqual(f, batch.Through, batch.After, "a batch cannot go back")
	if f.prefix == "" && f.Backend.Traits().Contiguous {
		require.Equal(f, int(batch.Through-batch.After), len(batch.Events), "revisions are said to be contiguous, but not all in (%d, %d] came", batch.After, batch.Through)
	}
	f.judgeAll(batch)
	f.started, f.through, f.state = true, batch.Through, batch.State
	return batch
}

// judgeLength demands that a batch is not longer than was asked for, but for the
// rest of a revision that may not be split.
func (f *follower) judgeLength(batch backend.Batch) {
	f.Helper()
	n := len(batch.Events)
	if n > f.max && !f.Backend.Traits().Contiguous {
		last := batch.Events[n-1].Revision
		for n > 0 && batch.Events[n-1].Revision == last {
			n--
		}
		require.Less(f, n, f.max, "Next returned more events than asked for, of %d revisions", f.max)
		return
	}
	require.LessOrEqual(f, n, f.max, "Next returned more events than asked for")
}

// judgeAll demands order, place and form of the events.
func (f *follower) judgeAll(batch backend.Batch) {
	f.Helper()
	last, key := batch.After, ""
	for _, ev := range batch.Events {
		f.judgeOrder(ev, last, key)
		require.True(f, store.HasPrefix(ev.Key(), f.prefix), "%v is not under the prefix %q", ev, f.prefix)
		f.judge(ev)
		last, key = ev.Revision, ev.Key()
	}
	require.GreaterOrEqual(f, batch.Through, last, "the batch goes beyond what it says")
}

// judgeOrder demands that an event is newer than the one before it, or of the same
// revision and a greater key, where storage may have that.
func (f *follower) judgeOrder(ev event, last store.Revision, key string) {
	f.Helper()
	if ev.Revision == last && key != "" && !f.Backend.Traits().Contiguous {
		require.Greater(f, ev.Key(), key, "%v after %q: events of one revision must be in key order, a key once", ev, key)
		return
	}
	require.Greater(f, ev.Revision, last, "%v after revision %d: each event must be newer than the one before", ev, last)
}

// judge demands that the event is well formed.
func (f *follower) judge(ev event) {
	f.Helper()
	require.NotNil(f, ev.Object, "%v has no object", ev)
	require.Equal(f, ev.Revision, ev.Object.Revision, "%v: its object must have its revision", ev)
	switch ev.Type {
	case store.Added:
		require.Nil(f, ev.Prev, "%v: there was nothing before", ev)
		require.Equal(f, ev.Revision, ev.Object.Created, "%v: it was created now", ev)
	case store.Modified, store.Deleted:
		if f.noPrev && ev.Prev == nil {
			return
		}
		require.NotNil(f, ev.Prev, "%v: the state before is missing", ev)
		require.Equal(f, ev.Key(), ev.Prev.Key, "%v: Prev is of another key", ev)
		require.Less(f, ev.Prev.Revision, ev.Revision, "%v: Prev is not older", ev)
		require.Equal(f, ev.Prev.Created, ev.Object.Created, "%v: a change must not change when it was created", ev)
	case store.Emitted:
		require.Nil(f, ev.Prev, "%v is no state", ev)
	default:
		require.Fail(f, "unknown event type", "%v", ev)
	}
	if ev.Type == store.Deleted {
		last := schema.Gone(ev.Prev, ev.Revision, ev.Object.Written)
		require.Equal(f, store.As[Item](last).Value, store.As[Item](ev.Object).Value, "%v must carry the last state", ev)
	}
}

// sees demands that exactly these events come next, and nothing after them.
func (f *follower) sees(want ...event) {
	f.Helper()
	if len(want) > 0 {
		require.Equal(f, texts(want), texts(f.until(want[len(want)-1].Revision)))
	}
	require.Empty(f, texts(f.drain()), "there was nothing more to see")
}

// texts prints what identifies each event, and its states.
func texts(events []event) []string {
	out := make([]string, 0, len(events))
	for _, ev := range events {
		out = append(out, ev.String()+" "+describe(ev.Object)+" was "+describe(ev.Prev))
	}
	return out
}

func added(o *object) event { return event{Type: store.Added, Revision: o.Revision, Object: o} }

func modified(prev, o *object) event {
	return event{Type: store.Modified, Revision: o.Revision, Object: o, Prev: prev}
}

func deleted(prev, gone *object) event {
	return event{Type: store.Deleted, Revision: gone.Revision, Object: gone, Prev: prev}
}
