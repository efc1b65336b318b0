package actors_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

// recordingWaker is a wake actor that notes its calls.
type recordingWaker struct {
	actors.WakeBox
	*journal
	woken func(ctx *actors.Context) bool
}

func (s *recordingWaker) Woken(ctx *actors.Context) bool {
	s.note("woken")
	return s.woken != nil && s.woken(ctx)
}

func (s *recordingWaker) Started(*actors.Context)  { s.note("started") }
func (s *recordingWaker) Stopping(*actors.Context) { s.note("stopping") }
func (s *recordingWaker) Stopped(*actors.Context)  { s.note("stopped") }

// spawnWaker spawns s under f's parent.
func (f *pair) spawnWaker(t *testing.T, s *recordingWaker) {
	f.parentRef.Tell(run("", func(ctx *actors.Context) {
		require.NoError(t, actors.SpawnWake(ctx, s, &s.WakeBox, nil))
	}))
	f.seeded.Run()
}

func newRecordingWaker(t *testing.T, d actors.Directive) (*pair, *recordingWaker) {
	f := newPair(t, d)
	s := &recordingWaker{journal: new(journal)}
	f.spawnWaker(t, s)
	return f, s
}

func TestWake_ManyWakesAreOneTurn(t *testing.T) {
	f, s := newRecordingWaker(t, actors.Stop)
	for range 1_000 {
		s.Wake()
	}
	f.seeded.Run()
	require.Equal(t, "started; woken", s.take())
	s.Wake()
	f.seeded.Run()
	require.Equal(t, "woken", s.take())
}

func TestWake_ABoxDoesNothingBeforeItsActorIsSpawned(t *testing.T) {
	f := newPair(t, actors.Stop)
	s := &recordingWaker{journal: new(journal)}
	s.Wake()
	s.Stop()
	require.False(t, s.Alive())
	f.spawnWaker(t, s)
	require.Equal(t, "started", s.take())
	require.True(t, s.Alive())
}

func TestWake_DuringATurnCausesOneMore(t *testing.T) {
	f, s := newRecordingWaker(t, actors.Stop)
	s.woken = func(*actors.Context) bool {
		s.woken = nil
		s.Wake()
		s.Wake()
		return false
	}
	s.Wake()
	f.seeded.Run()
	require.Equal(t, "started; woken; woken", s.take())
}

func TestWake_AgainLetsTheOthersGoFirst(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Workers: 1})
	j := new(journal)
	parent := actors.Spawn(sys, "hub", newRunner, actors.Options{})
	done := make(chan struct{})
	parent.Tell(func(ctx *actors.Context) {
		a, b := &yielder{journal: j, name: "a", done: done}, &yielder{journal: j, name: "b", done: done}
		boxes := []*actors.WakeBox{&a.WakeBox, &b.WakeBox}
		require.NoError(t, actors.SpawnWake(ctx, a, &a.WakeBox, nil))
		require.NoError(t, actors.SpawnWake(ctx, b, &b.WakeBox, nil))
		actors.WakeAll(ctx.System().Pool(), boxes)
	})
	<-done
	<-done
	require.Equal(t, "a; b; a; b; a; b", j.take())
}

type yielder struct {
	actors.WakeBox
	*journal
	name  string
	turns int
	done  chan struct{}
}

func (y *yielder) Woken(*actors.Context) bool {
	y.note("%s", y.name)
	if y.turns++; y.turns < 3 {
		return true
	}
	go func() { y.done <- struct{}{} }()
	return false
}

func TestWakeBox_DoesNothingBeforeTheSpawnAndAfterTheStop(t *testing.T) {
	var idle actors.WakeBox
	idle.Wake()
	idle.Stop()
	require.False(t, idle.Alive())
	require.Zero(t, idle.ID())

	f, s := newRecordingWaker(t, actors.Stop)
	require.True(t, s.Alive())
	require.NotZero(t, s.ID())
	s.Stop()
	s.Stop()
	s.Wake()
	f.seeded.Run()
	require.False(t, s.Alive())
	s.Wake()
	s.Stop()
	actors.WakeAll(f.sys.Pool(), []*actors.WakeBox{&s.WakeBox})
	require.Zero(t, f.seeded.Run())
	require.Equal(t, "started; stopping; stopped", s.take())
	require.Contains(t, f.run(), "parent lost a child")
}

func TestWakeBox_IsUsedOnce(t *testing.T) {
	f, s := newRecordingWaker(t, actors.Stop)
	again := func(ctx *actors.Context) {
		require.ErrorIs(t, actors.SpawnWake(ctx, s, &s.WakeBox, nil), actors.ErrSpawned)
	}
	f.parentRef.Tell(run("", again))
	f.seeded.Run()
	s.Stop()
	f.seeded.Run()
	f.parentRef.Tell(run("", again))
	f.seeded.Run()
	require.Equal(t, 2, f.sys.Actors())
}

func TestWake_AFailureStopsTheActorEvenIfToldToRestart(t *testing.T) {
	f, s := newRecordingWaker(t, actors.Restart)
	s.woken = func(*actors.Context) bool { panic("boom") }
	s.Wake()
	f.seeded.Run()
	require.Equal(t, "started; woken; stopping; stopped", s.take())
	require.Equal(t, "parent/"+s.ID().String()+": boom: Stop", f.failed())
}

func TestWake_TheActorCanBeResumed(t *testing.T) {
	f, s := newRecordingWaker(t, actors.Resume)
	s.woken = func(*actors.Context) bool { s.woken = nil; panic("boom") }
	s.Wake()
	f.seeded.Run()
	s.Wake()
	f.seeded.Run()
	require.Equal(t, "started; woken; woken", s.take())
}

func TestWake_TheActorHasNoChildren(t *testing.T) {
	f, s := newRecordingWaker(t, actors.Stop)
	leaf := &recordingWaker{journal: s.journal}
	var queued *actors.Ref[do]
	s.woken = func(ctx *actors.Context) bool {
		require.ErrorIs(t, actors.SpawnWake(ctx, leaf, &leaf.WakeBox, nil), actors.ErrNoChildren)
		require.False(t, leaf.Alive())
		queued = spawnProbe(ctx, &probe{journal: s.journal, name: "queued"}, actors.Options{})
		require.Zero(t, ctx.Children())
		return false
	}
	s.Wake()
	f.seeded.Run()
	require.Equal(t, actors.Gone, queued.Offer(say("x")))
	require.Equal(t, 3, f.sys.Actors(), "the pair and the waker")
	require.Equal(t, "started; woken", s.take())
}

func TestWake_AParentThatRestartsStopsIt(t *testing.T) {
	f := newPair(t, actors.Stop)
	top := &probe{journal: f.journal, name: "top", directive: actors.Restart}
	var ref *actors.Ref[do]
	top.hooks = map[string]func(*actors.Context){"started": func(ctx *actors.Context) {
		ref = spawnProbe(ctx, &probe{journal: f.journal, name: "mid"}, actors.Options{})
	}}
	spawnProbe(f.sys, top, actors.Options{})
	f.run()
	spawn := func() *recordingWaker {
		s := &recordingWaker{journal: f.journal}
		ref.Tell(run("", func(ctx *actors.Context) {
			require.Zero(t, ctx.Children(), "of the life before")
			require.NoError(t, actors.SpawnWake(ctx, s, &s.WakeBox, nil))
			require.Equal(t, 1, ctx.Children())
		}))
		f.seeded.Run()
		return s
	}
	before := spawn()
	ref.Tell(boom("1"))
	require.Equal(t, `mid got ; started; mid got 1; top asked about "boom 1"; mid restarting; stopping; stopped; `+
		`mid lost a child; mid started`, f.run())
	require.False(t, before.Alive())
	after := spawn()
	require.True(t, after.Alive())
	ref.Stop()
	f.run()
	require.False(t, after.Alive())
}

// No wake is lost: after the last Wake the actor sees everything that was
// published before it.
func TestWake_FromManyGoroutinesLosesNothing(t *testing.T) {
	const senders, each, watchers = 4, 3_000, 20
	sys := newSystem(t, actors.SystemConfig{})
	var published atomic.Int64
	done := make(chan struct{}, watchers)
	parent := actors.Spawn(sys, "hub", newRunner, actors.Options{})
	spawned := make(chan []*actors.WakeBox)
	parent.Tell(func(ctx *actors.Context) {
		var boxes []*actors.WakeBox
		for range watchers {
			r := &reader{tip: &published, end: senders * each, done: done}
			require.NoError(t, actors.SpawnWake(ctx, r, &r.WakeBox, nil))
			boxes = append(boxes, &r.WakeBox)
		}
		spawned <- boxes
	})
	boxes := <-spawned
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for range each {
				published.Add(1)
				if s%2 == 0 {
					actors.WakeAll(sys.Pool(), boxes)
					continue
				}
				for _, b := range boxes {
					b.Wake()
				}
			}
		})
	}
	wg.Wait()
	for range watchers {
		<-done
	}
}

// reader is a wake actor that reads at a cursor.
type reader struct {
	actors.WakeBox
	tip    *atomic.Int64
	cursor int64 // written without a lock: -race finds turns that overlap
	end    int64
	done   chan<- struct{}
}

func (r *reader) Woken(*actors.Context) bool {
	before := r.cursor
	r.cursor = r.tip.Load()
	if r.cursor == r.end && before != r.end {
		r.done <- struct{}{}
	}
	return false
}

func TestWake_WhileTheActorStops(t *testing.T) {
	const n = 300
	sys := newSystem(t, actors.SystemConfig{})
	parent := actors.Spawn(sys, "hub", newRunner, actors.Options{})
	spawned := make(chan *recordingWaker)
	parent.Tell(func(ctx *actors.Context) {
		for range n {
			s := &recordingWaker{journal: new(journal)}
			require.NoError(t, actors.SpawnWake(ctx, s, &s.WakeBox, nil))
			spawned <- s
		}
		close(spawned)
	})
	for s := range spawned {
		var wg sync.WaitGroup
		wg.Go(s.Wake)
		wg.Go(s.Stop)
		wg.Go(s.Stop)
		wg.Wait()
	}
	parent.Stop()
	require.NoError(t, sys.Close(t.Context()))
	require.Zero(t, sys.Actors())
}

func TestWakeAll_DoesNotAllocate(t *testing.T) {
	var wg sync.WaitGroup
	sys := newSystem(t, actors.SystemConfig{})
	boxes := spawnCounters(t, sys, 1_000, &wg)
	round := func() {
		wg.Add(len(boxes))
		actors.WakeAll(sys.Pool(), boxes)
		wg.Wait()
	}
	round()
	require.Less(t, testing.AllocsPerRun(100, round), 2.0, "per 1,000 wakes")
}

// Protoactor's set of children keeps the PIDs of those that it has removed, and
// a PID that was sent to keeps its actor.
func TestWake_AStoppedChildCanBeCollectedWhileItsParentLives(t *testing.T) {
	for _, end := range []string{"stop", "panic"} {
		t.Run(end, func(t *testing.T) {
			f := newPair(t, actors.Stop)
			f.run()
			freed := make(chan struct{})
			func() {
				s := &recordingWaker{journal: new(journal)}
				runtime.AddCleanup(s, func(struct{}) { close(freed) }, struct{}{})
				f.spawnWaker(t, s)
				if end == "stop" {
					s.Stop()
				} else {
					s.woken = func(*actors.Context) bool { panic("boom") }
					s.Wake()
				}
				f.seeded.Run()
			}()
			for collected := false; !collected; {
				runtime.GC()
				select {
				case <-freed:
					collected = true
				default:
					runtime.Gosched()
				}
			}
		})
	}
}

// An idle wake actor must cost little more than its box, the pointer beside it here, and
// that to both.
func TestWake_AnIdleActorAmong100000IsSmall(t *testing.T) {
	idle, _ := idleWakeActor(t, 100_000)
	box := float64(unsafe.Sizeof(actors.WakeBox{}))
	require.LessOrEqual(t, idle, box+32)
	require.Greater(t, idle, box, "less than the box itself: nothing was measured")
}

// TestWake_ABoxMayBeUsedWhileItsActorIsSpawned has all methods called meanwhile, for the race
// detector.
func TestWake_ABoxMayBeUsedWhileItsActorIsSpawned(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	parent := spawnProbe(sys, &probe{journal: new(journal), name: "parent"}, actors.Options{})
	s := &recordingWaker{journal: new(journal)}
	var users sync.WaitGroup
	for range 2 {
		users.Go(func() {
			for s.ID() == 0 {
				_, _ = s.Alive(), s.Running()
				s.Wake()
				runtime.Gosched()
			}
			s.Stop()
		})
	}
	parent.Tell(run("", func(ctx *actors.Context) {
		require.NoError(t, actors.SpawnWake(ctx, s, &s.WakeBox, nil))
	}))
	users.Wait()
}
