package actors_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/usercode"
)

// pair is a seeded system with a parent and its child, both probes.
type pair struct {
	*journal
	failures
	sys       *actors.System
	seeded    *actors.Seeded
	parent    *probe
	child     *probe
	parentRef *actors.Ref[do]
	childRef  *actors.Ref[do]
}

func newPair(t *testing.T, d actors.Directive) *pair {
	f := &pair{journal: new(journal)}
	f.sys, f.seeded = newSeeded(t, actors.SystemConfig{OnFailure: f.failures.add})
	f.child = &probe{journal: f.journal, name: "child", fail: map[string]bool{}, hooks: map[string]func(*actors.Context){}}
	f.parent = &probe{
		journal: f.journal, name: "parent", directive: d, fail: map[string]bool{},
		hooks: map[string]func(*actors.Context){"started": func(ctx *actors.Context) {
			f.childRef = spawnProbe(ctx, f.child, actors.Options{})
		}},
	}
	f.parentRef = spawnProbe(f.sys, f.parent, actors.Options{})
	return f
}

// run runs all turns and returns the events.
func (f *pair) run() string {
	f.seeded.Run()
	return f.journal.take()
}

func (f *pair) failed() string { return f.failures.take() }

func TestSupervision_ChildrenStopBeforeTheirParent(t *testing.T) {
	f := newPair(t, actors.Stop)
	require.Equal(t, "parent started; child started", f.run())
	require.Equal(t, "parent/child", f.childRef.Name())
	require.Equal(t, 2, f.sys.Actors())
	f.parentRef.Stop()
	require.Equal(t, "parent stopping; child stopping; child stopped; parent lost a child; parent stopped", f.run())
	require.Zero(t, f.sys.Actors())
	require.Equal(t, actors.Gone, f.childRef.Offer(say("late")))
}

func TestSupervision_APanicStopsTheChildByDefaultAndDropsItsQueue(t *testing.T) {
	f := newPair(t, actors.Stop)
	f.run()
	f.childRef.Tell(boom("1"))
	f.childRef.Tell(say("2"))
	require.Equal(t, `child got 1; parent asked about "boom 1"; child stopping; child dropped 2; child stopped; parent lost a child`, f.run())
	require.Equal(t, "parent/child: boom 1: Stop", f.failed())
	require.Equal(t, actors.Gone, f.childRef.Offer(say("3")))
	require.True(t, f.parentRef.Alive())
}

func TestSupervision_TheSystemStopsAnActorThatFails(t *testing.T) {
	f := newPair(t, actors.Restart)
	f.run()
	f.parentRef.Tell(boom("1"))
	require.Equal(t, "parent got 1; parent stopping; child stopping; child stopped; parent lost a child; parent stopped", f.run())
	require.Equal(t, "parent: boom 1: Stop", f.failed())
}

func TestSupervision_ARestartKeepsTheQueueAndLosesTheMessageThatPanicked(t *testing.T) {
	f := newPair(t, actors.Restart)
	f.run()
	f.childRef.Tell(boom("1"))
	f.childRef.Tell(say("2"))
	f.childRef.Offer(say("3"))
	require.Equal(t, `child got 1; parent asked about "boom 1"; child restarting; child started; child got 2; child got 3`, f.run())
	require.Equal(t, "parent/child: boom 1: Restart", f.failed())
	require.Equal(t, 2, f.sys.Actors())
}

func TestSupervision_ARestartMakesANewBehaviorAndStopsTheChildren(t *testing.T) {
	j := new(journal)
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	made := 0
	top := &probe{journal: j, name: "top", directive: actors.Restart, hooks: map[string]func(*actors.Context){}}
	var mid *actors.Ref[do]
	top.hooks["started"] = func(ctx *actors.Context) {
		mid = actors.Spawn(ctx, "mid", func() actors.Behavior[do] {
			made++
			return &probe{journal: j, name: "mid", hooks: map[string]func(*actors.Context){"started": func(ctx *actors.Context) {
				spawnProbe(ctx, &probe{journal: j, name: "leaf"}, actors.Options{})
			}}}
		}, actors.Options{})
	}
	spawnProbe(sys, top, actors.Options{})
	seeded.Run()
	j.take()
	mid.Tell(boom("1"))
	seeded.Run()
	require.Equal(t, `mid got 1; top asked about "boom 1"; mid restarting; leaf stopping; leaf stopped; `+
		`mid lost a child; mid started; leaf started`, j.take())
	require.Equal(t, 2, made)
	require.Equal(t, 3, sys.Actors())
}

func TestSupervision_AnActorCanTellWhyItStops(t *testing.T) {
	for _, d := range []actors.Directive{actors.Stop, actors.Restart, actors.Resume} {
		t.Run(d.String(), func(t *testing.T) {
			f := newPair(t, d)
			var why []string
			ask := func(ctx *actors.Context) {
				if failure := ctx.Failure(); failure != nil {
					why = append(why, failure.Error())
				}
			}
			for _, call := range []string{"restarting", "started", "stopping", "stopped"} {
				f.child.hooks[call] = ask
			}
			f.run()
			f.childRef.Tell(boom("1"))
			f.childRef.Tell(run("2", ask))
			f.run()
			told := map[actors.Directive][]string{
				actors.Stop:    {"actor parent/child failed: boom 1", "actor parent/child failed: boom 1"},
				actors.Restart: {"actor parent/child failed: boom 1"},
				actors.Resume:  nil,
			}
			require.Equal(t, told[d], why)
			why = nil
			f.parentRef.Stop()
			f.run()
			require.Empty(t, why, "it stops with its parent")
		})
	}
}

func TestSupervision_ResumeLosesOnlyTheMessage(t *testing.T) {
	f := newPair(t, actors.Resume)
	f.run()
	f.childRef.Tell(boom("1"))
	f.childRef.Tell(say("2"))
	require.Equal(t, `child got 1; parent asked about "boom 1"; child got 2`, f.run())
	require.Equal(t, "parent/child: boom 1: Resume", f.failed())
}

func TestSupervision_AFailedActorWaitsForItsParent(t *testing.T) {
	f := newPair(t, actors.Resume)
	f.run()
	f.childRef.Tell(boom("1"))
	for f.childRef.Len() > 0 || f.seeded.Pending() == 0 {
		f.seeded.RunN(1)
	}
	f.childRef.Tell(say("2"))
	f.run()
	require.Equal(t, "parent/child: boom 1: Resume", f.failed())
	f.childRef.Tell(say("3"))
	require.Equal(t, "child got 3", f.run())
}

func TestSupervision_APanicInStartedIsAFailureOfTheChildAlone(t *testing.T) {
	f := newPair(t, actors.Stop)
	f.child.fail["started"] = true
	require.Equal(t, `parent started; child started; parent asked about "in started"; child stopping; child stopped; parent lost a child`, f.run())
	require.Equal(t, "parent/child: in started: Stop", f.failed())
}

func TestSupervision_APanicInFlushIsAFailure(t *testing.T) {
	var fs failures
	sys, seeded := newSeeded(t, actors.SystemConfig{OnFailure: fs.add})
	ref := actors.Spawn(sys, "a", func() actors.Behavior[int] { return badFlush{} }, actors.Options{})
	ref.Tell(1)
	seeded.Run()
	require.Equal(t, "a: flush: Stop", fs.take())
	require.Zero(t, sys.Actors())
}

type badFlush struct{}

func (badFlush) Receive(*actors.Context, int) {}
func (badFlush) Flush(*actors.Context)        { panic("flush") }

func TestSupervision_AConstructorThatPanicsIsAFailureAndCannotBeResumed(t *testing.T) {
	for _, tc := range []struct {
		d    actors.Directive
		want string
	}{
		{actors.Resume, "parent/bad: no behavior: Stop"},
		{actors.Stop, "parent/bad: no behavior: Stop"},
		{actors.Restart, "parent/bad: no behavior: Restart; parent/bad: no behavior: Restart"},
	} {
		t.Run(tc.d.String(), func(t *testing.T) {
			f := newPair(t, tc.d)
			f.run()
			var ref *actors.Ref[do]
			tries := 0
			f.parentRef.Tell(run("spawn", func(ctx *actors.Context) {
				ref = actors.Spawn(ctx, "bad", func() actors.Behavior[do] {
					if tries++; tries < 3 {
						panic("no behavior")
					}
					return f.child
				}, actors.Options{})
			}))
			f.seeded.Run()
			require.Equal(t, tc.want, f.failed())
			require.Equal(t, tc.d == actors.Restart, ref.Alive())
		})
	}
}

func TestSupervision_ANilBehaviorIsAFailure(t *testing.T) {
	var fs failures
	sys, seeded := newSeeded(t, actors.SystemConfig{OnFailure: fs.add})
	actors.Spawn(sys, "a", func() actors.Behavior[int] { return nil }, actors.Options{})
	seeded.Run()
	require.Equal(t, "a: actors: the newBehavior given to Spawn returned nil: Stop", fs.take())
	require.Zero(t, sys.Actors())
}

// Asking the supervisor again would restart it for ever.
func TestSupervision_APanicInRestartingIsOnlyReported(t *testing.T) {
	f := newPair(t, actors.Restart)
	f.run()
	f.child.fail["restarting"] = true
	f.childRef.Tell(boom("1"))
	f.childRef.Tell(say("2"))
	require.Equal(t, `child got 1; parent asked about "boom 1"; child restarting; child started; child got 2`, f.run())
	require.Equal(t, "parent/child: boom 1: Restart; parent/child: in restarting: Restart", f.failed())
}

// Protoactor restarts an actor that panics while stopping, and its parent never
// stops.
func TestSupervision_APanicInStoppingStillStops(t *testing.T) {
	f := newPair(t, actors.Restart)
	f.run()
	f.child.fail["stopping"] = true
	f.parentRef.Stop()
	require.Equal(t, "parent stopping; child stopping; child stopped; parent lost a child; parent stopped", f.run())
	require.Equal(t, "parent/child: in stopping: Stop", f.failed())
	require.Zero(t, f.sys.Actors())
}

// Protoactor does not end such an actor, and its parent never stops.
func TestSupervision_APanicInStoppedStillStops(t *testing.T) {
	f := newPair(t, actors.Restart)
	f.run()
	f.child.fail["stopped"] = true
	f.parentRef.Stop()
	require.Equal(t, "parent stopping; child stopping; child stopped; parent lost a child; parent stopped", f.run())
	require.Equal(t, "parent/child: in stopped: Stop", f.failed())
}

// Without containment protoactor would not check whether that was the last child.
func TestSupervision_APanicInChildStoppedStillStops(t *testing.T) {
	f := newPair(t, actors.Stop)
	f.run()
	f.parent.fail["lost a child"] = true
	f.parentRef.Stop()
	require.Equal(t, "parent stopping; child stopping; child stopped; parent lost a child; parent stopped", f.run())
	require.Equal(t, "parent: in lost a child: Stop", f.failed())
}

func TestSupervision_APanicInChildFailedStopsBoth(t *testing.T) {
	f := newPair(t, actors.Resume)
	f.run()
	f.parent.fail[`asked about "boom 1"`] = true
	f.childRef.Tell(boom("1"))
	f.seeded.Run()
	require.Equal(t, `parent/child: boom 1: Stop; parent: in asked about "boom 1": Stop`, f.failed())
	require.Zero(t, f.sys.Actors())
}

func TestSupervision_AnInvalidDirectiveMeansStop(t *testing.T) {
	f := newPair(t, actors.Directive(77))
	f.run()
	f.childRef.Tell(boom("1"))
	f.run()
	require.Equal(t, "parent/child: boom 1: Stop", f.failed())
	require.False(t, f.childRef.Alive())
}

func TestSupervision_APanicInOnFailureIsContained(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{OnFailure: func(actors.Failure) { panic("worse") }})
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	ref.Tell(boom("1"))
	seeded.Run()
	require.False(t, ref.Alive())
}

// panickingHandler is a handler of log lines that has no place left for them.
type panickingHandler struct{ slog.Handler }

func (panickingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (panickingHandler) Handle(context.Context, slog.Record) error { panic("disk full") }

func TestSupervision_APanicOfTheLoggerIsContainedAndReported(t *testing.T) {
	var failed []string
	sys, seeded := newSeeded(t, actors.SystemConfig{
		Logger:    slog.New(panickingHandler{slog.DiscardHandler}),
		OnFailure: func(f actors.Failure) { failed = append(failed, fmt.Sprint(f.Actor, ": ", f.Reason)) },
	})
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	ref.Tell(boom("1"))
	seeded.Run()
	require.False(t, ref.Alive(), "the failure takes its course")
	require.Equal(t, []string{"logger: disk full", "a: boom 1"}, failed)
}

func TestSupervision_PanicsOfTheLoggerAndOfOnFailureAreContained(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{
		Logger:    slog.New(panickingHandler{slog.DiscardHandler}),
		OnFailure: func(actors.Failure) { panic("worse") },
	})
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	ref.Tell(boom("1"))
	seeded.Run()
	require.False(t, ref.Alive())
}

// Protoactor stops the children that exist, then waits for all: it would wait for
// a child spawned meanwhile without having stopped it.
func TestSupervision_AStoppingParentTakesNoChildren(t *testing.T) {
	for _, call := range []string{"stopping", "lost a child", "stopped"} {
		t.Run(call, func(t *testing.T) {
			f := newPair(t, actors.Stop)
			f.run()
			var late *actors.Ref[do]
			var box actors.WakeBox
			f.parent.hooks[call] = func(ctx *actors.Context) {
				late = spawnProbe(ctx, &probe{journal: f.journal, name: "late"}, actors.Options{})
				require.ErrorIs(t, actors.SpawnWake(ctx, nil, &box, nil), actors.ErrStopping)
			}
			f.parentRef.Stop()
			require.Contains(t, f.run(), "parent stopped")
			require.False(t, late.Alive())
			require.Equal(t, actors.Gone, late.Offer(say("x")))
			require.False(t, box.Alive())
			require.Zero(t, f.sys.Actors())
		})
	}
}

// A parent that replaces each child it loses would never come to the end of a
// restart, which waits until it has none.
func TestSupervision_ARestartingParentTakesNoChildren(t *testing.T) {
	f := newPair(t, actors.Stop)
	grand := &probe{journal: f.journal, name: "grand", directive: actors.Restart}
	var ref *actors.Ref[do]
	f.parent.hooks["lost a child"] = func(ctx *actors.Context) { spawnProbe(ctx, f.child, actors.Options{}) }
	grand.hooks = map[string]func(*actors.Context){"started": func(ctx *actors.Context) {
		ref = spawnProbe(ctx, f.parent, actors.Options{})
	}}
	spawnProbe(f.sys, grand, actors.Options{})
	f.run()
	ref.Tell(boom("1"))
	require.Equal(t, `parent got 1; grand asked about "boom 1"; parent restarting; child stopping; child stopped; `+
		`parent lost a child; parent started; child started`, f.run())
}

func TestSupervision_GoexitInReceiveFailsTheActorAndCostsNoWorker(t *testing.T) {
	failed := make(chan actors.Failure)
	sys := newSystem(t, actors.SystemConfig{Workers: 1, OnFailure: func(f actors.Failure) { failed <- f }})
	for range 3 {
		ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
		ref.Tell(run("exit", func(*actors.Context) { runtime.Goexit() }))
		f := <-failed
		require.ErrorIs(t, &f, usercode.ErrGoexit)
		require.Equal(t, actors.Stop, f.Directive)
	}
}

// As after a panic, only the message that failed is lost: those behind it need no other wake.
func TestSupervision_GoexitInReceiveLosesNoMessageBehindIt(t *testing.T) {
	for _, directive := range []actors.Directive{actors.Resume, actors.Restart} {
		t.Run(directive.String(), func(t *testing.T) {
			sys := newSystem(t, actors.SystemConfig{Workers: 1})
			parent := spawnProbe(sys, &probe{journal: new(journal), name: "parent", directive: directive}, actors.Options{})
			behind := make(chan struct{})
			parent.Tell(run("spawn", func(ctx *actors.Context) {
				child := spawnProbe(ctx, &probe{journal: new(journal), name: "child"}, actors.Options{})
				child.Tell(run("exit", func(*actors.Context) { runtime.Goexit() }))
				child.Tell(run("behind", func(*actors.Context) { close(behind) }))
			}))
			<-behind
		})
	}
}

// What is told of a failure, the logger or OnFailure, may end the goroutine, as t.FailNow does in
// a test that permits no errors: what has been decided is done all the same.
func TestSupervision_DecidesThoughOnFailureEndsItsGoroutine(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{OnFailure: func(actors.Failure) { runtime.Goexit() }})
	parent := spawnProbe(sys, &probe{journal: new(journal), name: "parent", directive: actors.Resume}, actors.Options{})
	behind, again := make(chan struct{}), make(chan struct{})
	failed := false
	parent.Tell(run("spawn", func(ctx *actors.Context) {
		child := spawnProbe(ctx, &probe{journal: new(journal), name: "child"}, actors.Options{})
		child.Tell(boom("1"))
		child.Tell(run("behind", func(*actors.Context) { close(behind) }))
		w := &recordingWaker{journal: new(journal)}
		w.woken = func(*actors.Context) bool {
			if !failed {
				failed = true
				w.Wake()
				panic("boom")
			}
			close(again)
			return false
		}
		require.NoError(t, actors.SpawnWake(ctx, w, &w.WakeBox, nil))
		w.Wake()
	}))
	<-behind
	<-again
}

func TestFailure_HasReasonAndStack(t *testing.T) {
	sentinel := errors.New("sentinel")
	var got actors.Failure
	sys, seeded := newSeeded(t, actors.SystemConfig{OnFailure: func(f actors.Failure) { got = f }})
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "a"}, actors.Options{})
	ref.Tell(run("", func(*actors.Context) { panicHere(sentinel) }))
	seeded.Run()
	require.ErrorIs(t, &got, sentinel)
	require.Equal(t, ref.ID(), got.ID)
	require.EqualError(t, &got, "actor a failed: sentinel")
	require.Contains(t, string(got.Stack), "panicHere")
}

func panicHere(err error) { panic(err) }

func TestContext_AnActorCanStopItself(t *testing.T) {
	f := newPair(t, actors.Stop)
	f.run()
	f.childRef.Tell(run("1", func(ctx *actors.Context) { ctx.Stop() }))
	f.childRef.Tell(say("2"))
	require.Equal(t, "child got 1; child stopping; child dropped 2; child stopped; parent lost a child", f.run())
}

// The actor has failed when it is told to stop. Its parent has yet to decide, but that changes
// nothing any more.
func TestFailure_BeforeAStopIsThatOfTheActor(t *testing.T) {
	for turns, events := range map[int]string{
		1: `child got 1; child stopping; child stopped; parent asked about "boom 1"; parent lost a child`,
		2: `child got 1; parent asked about "boom 1"; child stopping; child stopped; parent lost a child`,
	} {
		f := newPair(t, actors.Restart)
		f.run()
		var told *actors.Failure
		f.child.hooks = map[string]func(*actors.Context){"stopping": func(ctx *actors.Context) { told = ctx.Failure() }}
		f.childRef.Tell(boom("1"))
		f.seeded.RunN(turns)
		f.childRef.Stop()
		require.Equal(t, events, f.run(), "after %d turns", turns)
		require.NotNil(t, told, "after %d turns", turns)
		require.ErrorContains(t, told, "boom 1")
	}
}

// No supervisor decides about a failure that the stop overtakes. It is reported.
func TestFailure_DuringTheLastMessageIsReported(t *testing.T) {
	f := newPair(t, actors.Restart)
	f.run()
	f.childRef.Tell(run("1", func(*actors.Context) { f.childRef.Stop(); panic("last words") }))
	require.Equal(t, "child got 1; child stopping; child stopped; parent lost a child", f.run())
	require.Equal(t, "parent/child: last words: Stop", f.failed())
}

func TestFailure_BehindAStopIsReportedWhileTheChildrenStop(t *testing.T) {
	f := newPair(t, actors.Restart)
	f.child.hooks["started"] = func(ctx *actors.Context) {
		spawnProbe(ctx, &probe{journal: f.journal, name: "leaf"}, actors.Options{})
	}
	f.run()
	f.childRef.Tell(run("1", func(*actors.Context) { f.childRef.Stop(); panic("last words") }))
	require.Equal(t, "child got 1; child stopping; leaf stopping; leaf stopped; child lost a child; child stopped; parent lost a child", f.run())
	require.Equal(t, "parent/child: last words: Stop", f.failed())
}
