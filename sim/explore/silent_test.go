package explore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// silent is a lasting fault in a seam that changes little of what consumers see, and the
// invariant by which it is found.
type silent struct {
	name  string
	seams seams[Thing]
	by    judge.Invariant
}

// silents are sabotages that only a specific read or check detects.
var silents = []silent{
	{"end a watch silently", seams[Thing]{told: func(*watch[Thing], error) error { return nil }}, judge.Ends},
	{"close a channel without a reason", seams[Thing]{told: unexplained}, judge.Ends},
	{"keep a watch without a cache when storage's are lost", seams[Thing]{unbroken: func() bool { return true }}, judge.Ends},
	{"lose a Stop", seams[Thing]{stop: func(*watch[Thing]) bool { return true }}, judge.Ends},
	{"do not hear that a context ends", seams[Thing]{leave: func() bool { return true }}, judge.Ends},
	{"keep to itself why a context ended", seams[Thing]{told: causeless}, judge.Ends},
	{"forget a Timeout", asked(func(opts *engine.WatchOptions) { opts.Timeout = 0 }), judge.Ends},
	{"give no bookmarks", given(without(0)), judge.Bookmarkable},
	{"do not end the initial state", given(without(engine.InitialEnd)), judge.Bookmarkable},
	{"give bookmarks to all", asked(func(opts *engine.WatchOptions) { opts.Bookmarks = true }), judge.Bookmarkable},
	{"forget when an object was created", given(recreated), judge.Genuine},
	{"do not tell that emitted values are lost", given(untold), judge.Reliable},
	{"resume one too early", standing(func(rev store.Revision) store.Revision { return max(rev, 1) - 1 }), judge.Resumable},
	{"never say where to resume", standing(func(store.Revision) store.Revision { return 0 }), judge.Resumable},
	{"return another revision of a write", onStorage(misstate)(nil), judge.Acknowledged},
	{"serve nothing", onStorage(mute)(nil), judge.Refusals},
	{"survive a panic", onStorage(stumble)(nil), Contained},
}

func TestWhatIsNotShownIsFoundToo(t *testing.T) {
	cfg, err := Things().withDefaults()
	require.NoError(t, err)
	for _, s := range silents {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 100; seed++ {
				o := simulate(&cfg, Draw(seed, len(cfg.Selections), cfg.Steps), s.seams, nil)
				require.NoError(t, o.broken)
				if o.failure != nil {
					require.Equal(t, s.by, o.failure.Invariant, o.failure)
					return
				}
			}
			t.Fatal("not found within 100 seeds")
		})
	}
}

func asked(spoil func(*engine.WatchOptions)) seams[Thing] {
	return seams[Thing]{start: func(_ *World[Thing], opts engine.WatchOptions) engine.WatchOptions {
		spoil(&opts)
		return opts
	}}
}

func given(spoil deliver) seams[Thing] { return seams[Thing]{deliver: spoil} }

func standing(says func(store.Revision) store.Revision) seams[Thing] {
	return seams[Thing]{stands: func(_ *watch[Thing], rev store.Revision) store.Revision { return says(rev) }}
}

// unexplained hides the reason for the end of a watch from the consumer of a channel.
func unexplained(r *watch[Thing], err error) error {
	if r.consumer == Channel {
		return nil
	}
	return err
}

// causeless reports the end of a context as a Stop.
func causeless(_ *watch[Thing], err error) error {
	if errors.Is(err, errLeft) {
		return engine.ErrStopped
	}
	return err
}

// without leaves out the bookmarks with the marks.
func without(marks engine.Marks) deliver {
	return func(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if ev.Type == engine.Bookmark && ev.Marks == marks {
			return nil
		}
		return []engine.Event[Thing]{ev}
	}
}

// recreated gives a modified object the revision of the change as that of its creation.
func recreated(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
	if ev.Type == engine.Modified {
		o := *ev.Object
		o.Created = o.Revision
		ev.Object = &o
	}
	return []engine.Event[Thing]{ev}
}

// misstate returns the revision before that of a deletion.
func misstate(w *World[Thing], _ *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpRemove), Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		if c.Err == nil {
			c.Object = w.storage.schema.Gone(c.Object, c.Object.Revision-1, c.Object.Written)
		}
	})}
}

// mute fails to return the revision of storage, so that no read that must be fresh can be
// served.
func mute(*World[Thing], *once) faulty.Rule {
	return faulty.Rule{Ops: one(faulty.OpRevision), Do: faulty.Fail(errOutage)}
}

// stumble makes the function of a timer panic, once. Such a panic is reported like that of
// an actor.
func stumble(w *World[Thing], _ *once) faulty.Rule {
	w.host.Clock().AfterFunc(time.Millisecond, func() { panic("once") })
	return faulty.Rule{}
}

// untold removes the marks of emitted values.
func untold(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
	ev.Marks &^= engine.AfterGap
	return []engine.Event[Thing]{ev}
}
