package actors_test

import (
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

func TestRef_OfferAndTellKeepTheirOrder(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnProbe(sys, p, actors.Options{})
	ref.Offer(say("1"))
	ref.Tell(say("2"))
	ref.Offer(say("3"))
	require.Equal(t, 3, ref.Len())
	seeded.Run()
	require.Equal(t, "a started; a got 1; a got 2; a got 3", p.take())
	require.Zero(t, ref.Len())
}

func TestRef_KeepsTheOrderOfEachSender(t *testing.T) {
	const senders, each = 4, 2_000
	sys := newSystem(t, actors.SystemConfig{})
	seen := make(chan [2]int, senders*each)
	ref := actors.Spawn(sys, "sink", func() actors.Behavior[[2]int] { return recorder{seen} }, actors.Options{Capacity: 16})
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for n := range each {
				switch n % 3 {
				case 0:
					ref.Tell([2]int{s, n})
				case 1:
					ref.Ask([2]int{s, n})
				default:
					for ref.Offer([2]int{s, n}) == actors.Full {
						runtime.Gosched()
					}
				}
			}
		})
	}
	wg.Wait()
	var next [senders]int
	for range senders * each {
		m := <-seen
		require.Equal(t, next[m[0]], m[1])
		next[m[0]]++
	}
}

type recorder struct{ seen chan<- [2]int }

func (r recorder) Receive(_ *actors.Context, m [2]int) { r.seen <- m }

func TestRef_OfferIsFullAtCapacityAndTellIsNot(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnProbe(sys, p, actors.Options{Capacity: 2})
	require.Equal(t, actors.Accepted, ref.Offer(say("1")))
	require.Equal(t, actors.Accepted, ref.Offer(say("2")))
	require.Equal(t, actors.Full, ref.Offer(say("no")))
	require.True(t, ref.Tell(say("3")))
	seeded.Run()
	require.Equal(t, "a started; a got 1; a got 2; a got 3", p.take())
	require.Equal(t, actors.Accepted, ref.Offer(say("4")))
}

func TestRef_TheMessageBeingHandledIsNotInTheQueue(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnProbe(sys, p, actors.Options{Capacity: 1})
	entered, leave := make(chan struct{}), make(chan struct{})
	ref.Offer(run("block", func(*actors.Context) { close(entered); <-leave }))
	<-entered
	require.Zero(t, ref.Len())
	require.Equal(t, actors.Accepted, ref.Offer(say("2")))
	require.Equal(t, actors.Full, ref.Offer(say("3")))
	close(leave)
}

func TestOnRoom_IsCalledOnceAfterFull(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnProbe(sys, p, actors.Options{Capacity: 4, OnRoom: func() { p.note("room") }})
	for range 2 { // every edge anew
		for _, n := range []string{"1", "2", "3", "4"} {
			require.Equal(t, actors.Accepted, ref.Offer(say(n)))
		}
		require.Equal(t, actors.Full, ref.Offer(say("5")))
		require.Equal(t, actors.Full, ref.Offer(say("6")))
		seeded.Run()
	}
	require.Equal(t, "a started; a got 1; a got 2; room; a got 3; a got 4; "+
		"a got 1; a got 2; room; a got 3; a got 4", p.take(), "at half the capacity")

	ref.Offer(say("1"))
	seeded.Run()
	require.Equal(t, "a got 1", p.take(), "without a Full there is no edge")
}

// A producer that offers until Full and goes on at OnRoom must never wait for
// ever, wherever the consumer is when the Offer returns Full.
func TestOnRoom_IsNeverMissed(t *testing.T) {
	const messages = 20_000
	sys := newSystem(t, actors.SystemConfig{})
	room := make(chan struct{}, 1)
	done := make(chan struct{})
	ref := actors.Spawn(sys, "sink", func() actors.Behavior[int] { return sink{done} },
		actors.Options{Capacity: 1, OnRoom: func() { room <- struct{}{} }})
	for n := messages; n > 0; {
		if ref.Offer(n) == actors.Full {
			<-room
			continue
		}
		n--
	}
	ref.Tell(0)
	<-done
}

func TestOnRoom_IsCalledWhenTheActorStops(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnProbe(sys, p, actors.Options{Capacity: 1, OnRoom: func() { p.note("room") }})
	seeded.Run()
	ref.Offer(say("1"))
	require.Equal(t, actors.Full, ref.Offer(say("2")))
	ref.Stop()
	seeded.Run()
	require.Equal(t, "a started; a stopping; room; a dropped 1; a stopped", p.take())
}

func TestRef_StopOvertakesTheQueueAndDropsIt(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	p := &probe{journal: new(journal), name: "a"}
	ref := spawnProbe(sys, p, actors.Options{})
	seeded.Run()
	ref.Offer(say("1"))
	ref.Tell(say("2"))
	require.True(t, ref.Alive())
	ref.Stop()
	require.Equal(t, actors.Gone, ref.Offer(say("3")), "from the moment that Stop returns")
	require.False(t, ref.Tell(say("4")))
	require.False(t, ref.Alive())
	ref.Stop()
	seeded.Run()
	ref.Stop()
	require.Zero(t, seeded.Run(), "a third Stop does nothing")
	require.Equal(t, "a started; a stopping; a dropped 1; a dropped 2; a stopped", p.take())
	require.Zero(t, sys.Actors())
}

func TestRef_EveryAcceptedMessageIsReceivedOrDropped(t *testing.T) {
	const senders = 4
	sys := newSystem(t, actors.SystemConfig{})
	var tally tally
	ref := actors.Spawn(sys, "a", func() actors.Behavior[int] { return &tally }, actors.Options{Capacity: 8})
	var wg sync.WaitGroup
	var accepted [senders]int
	for s := range senders {
		wg.Go(func() {
			for {
				if accepted[s]%2 == 1 {
					if !ref.Ask(1) {
						return
					}
					accepted[s]++
					continue
				}
				switch ref.Offer(1) {
				case actors.Accepted:
					accepted[s]++
				case actors.Full:
					runtime.Gosched()
				case actors.Gone:
					return
				}
				if s == 0 && accepted[0] >= 500 {
					ref.Stop()
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, sys.Close(t.Context()))
	require.Equal(t, accepted[0]+accepted[1]+accepted[2]+accepted[3], tally.received+tally.dropped)
}

type tally struct{ received, dropped int }

func (t *tally) Receive(*actors.Context, int) { t.received++ }
func (t *tally) Dropped(int)                  { t.dropped++ }

func TestRef_StopBeforeTheStartMakesABehaviorOnlyToDrop(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	p := &probe{journal: new(journal), name: "a"}
	made := 0
	ref := actors.Spawn(sys, "a", func() actors.Behavior[do] { made++; return p }, actors.Options{})
	idle := actors.Spawn(sys, "b", func() actors.Behavior[do] { made++; return p }, actors.Options{})
	ref.Tell(say("1"))
	ref.Stop()
	idle.Stop()
	seeded.Run()
	require.Equal(t, 1, made)
	require.Equal(t, "a dropped 1; a stopped", p.take())
}

func TestRef_APanicInDroppedAffectsThatMessageOnly(t *testing.T) {
	var f failures
	sys, seeded := newSeeded(t, actors.SystemConfig{OnFailure: f.add})
	p := &probe{journal: new(journal), name: "a", fail: map[string]bool{"dropped 1": true}}
	ref := spawnProbe(sys, p, actors.Options{})
	seeded.Run()
	ref.Tell(say("1"))
	ref.Tell(say("2"))
	ref.Stop()
	seeded.Run()
	require.Equal(t, "a started; a stopping; a dropped 1; a dropped 2; a stopped", p.take())
	require.Equal(t, "a: in dropped 1: Stop", f.take())
}

// batcher notes the batches that it is flushed with.
type batcher struct {
	*journal
	n int
}

func (b *batcher) Receive(_ *actors.Context, f func()) { b.n++; f() }
func (b *batcher) Flush(*actors.Context)               { b.note("flush %d", b.n); b.n = 0 }

func TestFlush_ComesWhenTheQueueIsEmptyOrTheQuotaUsed(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Executor: nil, Workers: 1})
	b := &batcher{journal: new(journal)}
	ref := actors.Spawn(sys, "a", func() actors.Behavior[func()] { return b }, actors.Options{})
	done := make(chan struct{})
	ref.Tell(func() { // so that the rest is in the queue when this one is done
		for range actors.DefaultThroughput {
			ref.Tell(func() {})
		}
		ref.Tell(func() { close(done) })
	})
	<-done
	require.NoError(t, sys.Close(t.Context()))
	// The stop may come before the last flush.
	require.Contains(t, []string{"flush 64", "flush 64; flush 2"}, b.take())
}

func TestFlush_ComesAfterAnInterruptionBySystemMessages(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	b := &batcher{journal: new(journal)}
	var child *actors.Ref[do]
	b2 := &flushingParent{batcher: b, spawn: func(ctx *actors.Context) {
		child = spawnProbe(ctx, &probe{journal: b.journal, name: "child"}, actors.Options{})
	}}
	ref := actors.Spawn(sys, "a", func() actors.Behavior[func()] { return b2 }, actors.Options{})
	seeded.Run()
	b.take()
	ref.Tell(func() { child.Stop() })
	seeded.Run()
	require.Equal(t, "flush 1; child stopping; child stopped; child gone", b.take())
}

// If a child ends just when the parent has found its queue empty, the parent must
// still flush before its next message.
func TestFlush_IsNotLeftToTheNextMessage(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Workers: 2})
	g := &gatherer{flushed: make(chan int, 1)}
	ref := actors.Spawn(sys, "a", func() actors.Behavior[func(*actors.Context)] { return g }, actors.Options{})
	children := make(chan *actors.Ref[int], 1)
	for range 2000 {
		ref.Tell(func(ctx *actors.Context) {
			children <- actors.Spawn(ctx, "child", func() actors.Behavior[int] { return sink{} }, actors.Options{})
		})
		child := <-children
		require.Equal(t, 1, <-g.flushed)
		go child.Stop()
		ref.Tell(func(*actors.Context) {})
		require.Equal(t, 1, <-g.flushed)
	}
}

// gatherer counts messages, and sends the count in Flush.
type gatherer struct {
	n       int
	flushed chan int
}

func (g *gatherer) Receive(ctx *actors.Context, f func(*actors.Context)) { g.n++; f(ctx) }
func (g *gatherer) Flush(*actors.Context)                                { g.flushed <- g.n; g.n = 0 }

func TestFlush_DoesNotComeAfterStopping(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	j := new(journal)
	var ref *actors.Ref[func()]
	parent := &flushingParent{batcher: &batcher{journal: j}, spawn: func(ctx *actors.Context) {
		spawnProbe(ctx, &probe{journal: j, name: "child"}, actors.Options{})
	}}
	ref = actors.Spawn(sys, "a", func() actors.Behavior[func()] { return parent }, actors.Options{})
	seeded.Run()
	j.take()
	ref.Tell(func() { ref.Stop() })
	seeded.Run()
	require.Equal(t, "child stopping; child stopped; child gone", j.take())
}

type flushingParent struct {
	*batcher
	spawn func(*actors.Context)
}

func (p *flushingParent) Started(ctx *actors.Context)             { p.spawn(ctx) }
func (p *flushingParent) ChildStopped(*actors.Context, actors.ID) { p.note("child gone") }

func TestRef_FreesTheMemoryOfABurstOfTells(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	ref := actors.Spawn(sys, "a", func() actors.Behavior[[1024]byte] { return devNull{} }, actors.Options{Capacity: 4})
	seeded.Run()
	before := heap()
	for range 10_000 {
		ref.Tell([1024]byte{})
	}
	seeded.Run()
	ref.Tell([1024]byte{}) // the second swap finds the large slice
	seeded.Run()
	require.Less(t, int64(heap())-int64(before), int64(1<<20), "of more than 10 MB")
	require.True(t, ref.Alive())
}

type devNull struct{}

func (devNull) Receive(*actors.Context, [1024]byte) {}

func TestRef_OfferDoesNotAllocate(t *testing.T) {
	sys, seeded := newSeeded(t, actors.SystemConfig{})
	ref := actors.Spawn(sys, "a", func() actors.Behavior[int] { return sink{} }, actors.Options{})
	burst := func() {
		for range 100 {
			ref.Offer(1)
		}
		seeded.Run()
	}
	burst()
	burst() // both slices of the queue have their size now
	require.Zero(t, testing.AllocsPerRun(100, burst))
}

// heavy is a message, and a behavior that panics with a message that is bad.
type heavy struct {
	bad bool
	_   [1 << 10]byte // so that it has an allocation of its own
}

func (*heavy) Receive(_ *actors.Context, m *heavy) {
	if m.bad {
		panic(m)
	}
}

func TestRef_OfAStoppedActorKeepsNeitherItsBehaviorNorItsMessages(t *testing.T) {
	for _, end := range []string{"stop", "failure"} {
		t.Run(end, func(t *testing.T) {
			sys, seeded := newSeeded(t, actors.SystemConfig{})
			parent := spawnProbe(sys, &probe{journal: new(journal), name: "parent"}, actors.Options{})
			var ref *actors.Ref[*heavy]
			var kept []weak.Pointer[heavy]
			keep := func() *heavy {
				h := new(heavy)
				kept = append(kept, weak.Make(h))
				return h
			}
			func() {
				behavior, room := keep(), keep()
				parent.Tell(run("", func(ctx *actors.Context) {
					ref = actors.Spawn(ctx, "heavy", func() actors.Behavior[*heavy] { return behavior },
						actors.Options{OnRoom: func() { room.bad = true }})
				}))
				seeded.Run()
				ref.Tell(keep())
				seeded.Run()
				last := keep()
				last.bad = end == "failure"
				ref.Tell(last)
				ref.Tell(keep())
				if end == "stop" {
					ref.Stop()
				}
				seeded.Run()
			}()
			require.False(t, ref.Alive())
			runtime.GC()
			for i, h := range kept {
				require.True(t, h.Value() == nil, "number %d is kept", i)
			}
			runtime.KeepAlive(ref)
		})
	}
}

// Nothing of a child stays behind in its parent, so that one which spawns children for ever does not grow.
func TestRef_OfAChildThatHasStoppedIsGarbage(t *testing.T) {
	for _, spawn := range []string{"stopped by its ref", "failed"} {
		t.Run(spawn, func(t *testing.T) {
			sys, seeded := newSeeded(t, actors.SystemConfig{})
			parent := spawnProbe(sys, &probe{journal: new(journal), name: "parent", directive: actors.Stop}, actors.Options{})
			var children []weak.Pointer[actors.Ref[*heavy]]
			for range 3 {
				parent.Tell(run("", func(ctx *actors.Context) {
					child := actors.Spawn(ctx, "child", func() actors.Behavior[*heavy] { return new(heavy) }, actors.Options{})
					children = append(children, weak.Make(child))
					if spawn == "failed" {
						child.Tell(&heavy{bad: true})
					} else {
						child.Stop()
					}
				}))
				seeded.Run()
			}
			require.Equal(t, 1, sys.Actors())
			runtime.GC()
			for i, child := range children {
				require.True(t, child.Value() == nil, "child %d is kept", i)
			}
		})
	}
}
