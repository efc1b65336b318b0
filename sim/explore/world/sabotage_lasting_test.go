package world

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// lastingFault is a lasting fault in a seam that changes little of what consumers see, and the
// invariant by which it is found.
type lastingFault struct {
	name    string
	seams   seams[Thing]
	foundBy judge.Invariant
}

// lastingFaults are sabotages that only a specific read or check detects.
var lastingFaults = []lastingFault{
	{"end a watch silently", seams[Thing]{endError: func(*World[Thing], *watch[Thing], error) error { return nil }}, judge.Ends},
	{"tell of an end twice", seams[Thing]{toldEnds: func(told []error) []error { return append(told, told...) }}, judge.Ends},
	{"end silently a watch of what storage had before it went back", seams[Thing]{endError: hideEarlyEnd}, judge.Ends},
	{"close a channel without a reason", seams[Thing]{endError: hideChannelEnd}, judge.Ends},
	{"keep a watch without a cache when storage's are lost", seams[Thing]{sparesUncached: func() bool { return true }}, judge.Ends},
	{"lose a Stop", seams[Thing]{stop: func(*watch[Thing]) bool { return true }}, judge.Ends},
	{"do not hear that a context ends", seams[Thing]{cancel: func() bool { return true }}, judge.Ends},
	{"keep to itself why a context ended", seams[Thing]{endError: hideCancelCause}, judge.Ends},
	{"say that a watch was slow that was not", seams[Thing]{endError: blameSlowness}, judge.Ends},
	{"say that a watch has lost what it has", seams[Thing]{endError: blameWindow}, judge.Ends},
	{"forget a Timeout", changeOptions(func(opts *engine.WatchOptions) { opts.Timeout = 0 }), judge.Ends},
	{"give no bookmarks", changeEvents(withoutBookmarks(0)), judge.Bookmarkable},
	{"do not end the initial state", changeEvents(withoutBookmarks(engine.InitialEnd)), judge.Bookmarkable},
	{"give bookmarks to all", changeOptions(func(opts *engine.WatchOptions) { opts.Bookmarks = true }), judge.Bookmarkable},
	{"tell no progress", changeOptions(func(opts *engine.WatchOptions) { opts.Progress = false }), judge.Bookmarkable},
	{"forget when an object was created", changeEvents(wrongCreation), judge.Genuine},
	{"forget when an object expires", changeEvents(withoutExpiry), judge.Genuine},
	{"forget when the object before expired", changeEvents(withoutPreviousExpiry), judge.PrevValue},
	{"tell of a deletion when the object was written", changeEvents(deletedWhenWritten), judge.Genuine},
	{"forget when objects expire that an informer shows", seams[Thing]{shown: withoutExpiries}, judge.ReadState},
	{"do not tell that emitted values are lost", changeEvents(dropEveryMark), judge.Reliable},
	{"resume one too early", changeResumeRevision(func(rev store.Revision) store.Revision { return max(rev, 1) - 1 }), judge.Resumable},
	{"resume a handler one too early", seams[Thing]{resumeRevision: understateHandled}, judge.Resumable},
	{"never say where to resume", changeResumeRevision(func(store.Revision) store.Revision { return 0 }), judge.Resumable},
	{"return another revision of a write", onStorage(understateDeletion)(nil), judge.Acknowledged},
	{"show less by an informer at rest", seams[Thing]{shown: omitAtRest}, judge.ReadState},
	{"return a write without when its object was created", onStorage(forgetCreation)(nil), judge.Acknowledged},
	{"return a write without when its object expires", onStorage(forgetExpiryOfResult)(nil), judge.Acknowledged},
	{"return a write without its time", onStorage(forgetTime)(nil), judge.Acknowledged},
	{"compare nothing", changeConfig(func(c *engine.Config[Thing]) { c.VerifyEvery = 0 })(nil), Consistent},
	{"serve nothing", onStorage(failRevision)(nil), judge.Refusals},
	{"survive a panic", onStorage(panicInTimer)(nil), Contained},
}

func TestSabotage_LastingFaultsAreFound(t *testing.T) {
	cfg, err := Things().WithDefaults()
	require.NoError(t, err)
	for _, s := range lastingFaults {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= maxSabotaged; seed++ {
				o := simulate(&cfg, drawn(cfg, seed), s.seams, nil)
				require.NoError(t, o.Err)
				if o.Failure != nil {
					require.Equal(t, s.foundBy, o.Failure.Invariant, o.Failure)
					return
				}
			}
			t.Fatalf("not found within %d seeds", maxSabotaged)
		})
	}
}

func changeOptions(spoil func(*engine.WatchOptions)) seams[Thing] {
	return seams[Thing]{start: func(_ *World[Thing], opts engine.WatchOptions) engine.WatchOptions {
		spoil(&opts)
		return opts
	}}
}

func changeEvents(spoil deliver) seams[Thing] { return seams[Thing]{deliver: spoil} }

func changeResumeRevision(says func(store.Revision) store.Revision) seams[Thing] {
	return seams[Thing]{resumeRevision: func(_ *watch[Thing], rev store.Revision) store.Revision { return says(rev) }}
}

// understateHandled returns the revision before the one up to which a handler has everything.
func understateHandled(r *watch[Thing], rev store.Revision) store.Revision {
	if r.consumer.Handled() {
		return max(rev, 1) - 1
	}
	return rev
}

// hideChannelEnd hides the reason for the end of a watch from the consumer of a channel.
func hideChannelEnd(_ *World[Thing], r *watch[Thing], err error) error {
	if r.consumer == script.Channel {
		return nil
	}
	return err
}

// hideEarlyEnd hides why a watch has ended that began before the engine had noticed that storage has gone back.
func hideEarlyEnd(_ *World[Thing], r *watch[Thing], err error) error {
	if r.ambiguous && r.since < r.rewinds {
		return nil
	}
	return err
}

// hideCancelCause reports the end of a context as a Stop.
func hideCancelCause(_ *World[Thing], _ *watch[Thing], err error) error {
	if errors.Is(err, execution.ErrCanceled) {
		return engine.ErrStopped
	}
	return err
}

// blameSlowness reports the end of a watch as that of a slow one, although it has not lagged.
func blameSlowness(w *World[Thing], r *watch[Thing], err error) error {
	if w.noteLag(r); r.Options.Policy == engine.Terminate && !r.Lagged {
		return engine.ErrSlowConsumer
	}
	return err
}

// blameWindow reports the end of a watch as the window's, which has moved past its position, but past nothing that it
// has yet to deliver.
func blameWindow(w *World[Thing], r *watch[Thing], err error) error {
	if r.Uncached || w.mayExpire(r) || !r.MayExpire(w.floor(r)) {
		return err
	}
	return &store.ExpiredError{Requested: 2, Oldest: 3}
}

// withoutBookmarks leaves out the bookmarks with the marks.
func withoutBookmarks(marks engine.Marks) deliver {
	return func(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if ev.Type == engine.Bookmark && ev.Marks == marks {
			return nil
		}
		return []engine.Event[Thing]{ev}
	}
}

// wrongCreation gives a modified object the revision of the change as that of its creation.
func wrongCreation(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
	if ev.Type == engine.Modified {
		o := *ev.Object
		o.Created = o.Revision
		ev.Object = &o
	}
	return []engine.Event[Thing]{ev}
}

func withoutExpiry(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
	ev.Object = neverExpires(ev.Object)
	return []engine.Event[Thing]{ev}
}

func withoutPreviousExpiry(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
	ev.Prev = neverExpires(ev.Prev)
	return []engine.Event[Thing]{ev}
}

func withoutExpiries(_ *World[Thing], objects []*engine.Object[Thing]) (all []*engine.Object[Thing]) {
	for _, o := range objects {
		all = append(all, neverExpires(o))
	}
	return all
}

// neverExpires returns a copy of an object that does not expire, nil for nil.
func neverExpires(o *engine.Object[Thing]) *engine.Object[Thing] {
	if o == nil {
		return nil
	}
	own := *o
	own.Expires = time.Time{}
	return &own
}

// deletedWhenWritten gives a deletion the time of the write before.
func deletedWhenWritten(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
	if ev.Type == engine.Deleted {
		o := *ev.Object
		o.Written = ev.Prev.Written
		ev.Object = &o
	}
	return []engine.Event[Thing]{ev}
}

// understateDeletion returns the revision before that of a deletion.
func understateDeletion(w *World[Thing], _ *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpRemove), Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		if c.Err == nil {
			c.Object = w.storage.Schema.Gone(c.Object, c.Object.Revision-1, c.Object.Written)
		}
	})}
}

// omitAtRest leaves out the first object that an informer shows at rest, once the engine has found the
// newest revision by listing.
func omitAtRest(w *World[Thing], objects []*engine.Object[Thing]) []*engine.Object[Thing] {
	if w.resting && len(objects) > 0 && !w.history().Received(w.newest()) {
		return objects[1:]
	}
	return objects
}

// changeResult changes the object that a write of an object returns.
func changeResult(w *World[Thing], spoil func(*store.Object)) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpPut), Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		if c.Err == nil {
			c.Object = w.storage.Schema.Clone(c.Object)
			spoil(c.Object)
		}
	})}
}

func forgetCreation(w *World[Thing], _ *once) faulty.Rule {
	return changeResult(w, func(o *store.Object) { o.Created = 0 })
}

func forgetExpiryOfResult(w *World[Thing], _ *once) faulty.Rule {
	return changeResult(w, func(o *store.Object) { o.Expires = time.Time{} })
}

func forgetTime(w *World[Thing], _ *once) faulty.Rule {
	return changeResult(w, func(o *store.Object) { o.Written = time.Time{} })
}

// failRevision fails to return the revision of storage, so that no read that must be fresh can be
// served.
func failRevision(*World[Thing], *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpRevision), Do: faulty.Fail(storage.ErrOutage)}
}

// panicInTimer makes the function of a timer panic, once. Such a panic is reported like that of
// an actor.
func panicInTimer(w *World[Thing], _ *once) faulty.Rule {
	w.host.Clock().AfterFunc(time.Millisecond, func() { panic("once") })
	return faulty.Rule{}
}

// dropEveryMark removes the marks of emitted values.
func dropEveryMark(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
	ev.Marks &^= engine.AfterGap
	return []engine.Event[Thing]{ev}
}
