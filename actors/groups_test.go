package actors_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

// waker is a wake actor that calls a function.
type waker struct {
	actors.WakeBox
	woken   func()
	started *sync.WaitGroup
}

func (w *waker) Started(*actors.Context) { w.started.Done() }

func (w *waker) Woken(*actors.Context) bool {
	w.woken()
	return false
}

// spawnGroup spawns wake actors that call the functions, below an actor of their
// own, so that they are a group. It returns when they have started.
func spawnGroup(tb testing.TB, sys *actors.System, name string, woken ...func()) []*actors.WakeBox {
	boxes := make([]*actors.WakeBox, len(woken))
	var started sync.WaitGroup
	started.Add(len(boxes))
	parent := actors.Spawn(sys, name, newRunner, actors.Options{})
	parent.Tell(func(ctx *actors.Context) {
		for i := range boxes {
			w := &waker{woken: woken[i], started: &started}
			boxes[i] = &w.WakeBox
			if err := actors.SpawnWake(ctx, w, boxes[i], nil); err != nil {
				tb.Error(err)
			}
		}
	})
	started.Wait()
	return boxes
}

func repeat(n int, f func()) []func() {
	all := make([]func(), n)
	for i := range all {
		all[i] = f
	}
	return all
}

// holdWorker occupies the only worker of a system until release is called.
func holdWorker(sys *actors.System) (release func()) {
	entered, leave := make(chan struct{}), make(chan struct{})
	sys.Pool().Submit(newTask(func() { close(entered); <-leave }))
	<-entered
	return func() { close(leave) }
}

func TestPool_AnIdleGroupWaitsForOneTurnOnly(t *testing.T) {
	for _, size := range []int{10, 100} { // less and more than a batch
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			sys := newSystem(t, actors.SystemConfig{Workers: 1})
			var order []string // appended by turns only, on the only worker
			entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var turns []func()
			want := []string{"busy0", "quiet"}
			for i := range size {
				name := fmt.Sprint("busy", i)
				turns = append(turns, func() { order = append(order, name) })
				if i > 0 {
					want = append(want, name)
				}
			}
			first, last := turns[0], turns[size-1]
			turns[0] = func() { close(entered); <-leave; first() }
			turns[size-1] = func() { last(); close(done) }
			busy := spawnGroup(t, sys, "busy", turns...)
			quiet := spawnGroup(t, sys, "quiet", func() { order = append(order, "quiet") })

			actors.WakeAll(sys.Pool(), busy)
			<-entered // the worker has taken a batch
			quiet[0].Wake()
			close(leave)
			<-done
			require.Equal(t, want, order)
		})
	}
}

// An event takes several hops through the actors of one engine.
func TestPool_AChainOfHopsOfAnIdleGroupIsNotInterrupted(t *testing.T) {
	for _, tc := range []struct{ hops, meanwhile int }{{4, 0}, {12, 8}} {
		t.Run(fmt.Sprint(tc.hops), func(t *testing.T) {
			sys := newSystem(t, actors.SystemConfig{Workers: 1})
			var turns int // of the busy group, on the only worker
			busy := spawnGroup(t, sys, "busy", repeat(100, func() { turns++ })...)
			var chain []*actors.WakeBox
			hops := make([]func(), tc.hops)
			done := make(chan int, 1)
			for i := range hops {
				hops[i] = func() { chain[i+1].Wake() }
			}
			hops[tc.hops-1] = func() { done <- turns }
			chain = spawnGroup(t, sys, "quiet", hops...)

			release := holdWorker(sys)
			actors.WakeAll(sys.Pool(), busy)
			chain[0].Wake()
			release()
			require.LessOrEqual(t, <-done, tc.meanwhile)
		})
	}
}

func TestPool_BusyGroupsTakeTurns(t *testing.T) {
	const size, share = 100, 4
	sys := newSystem(t, actors.SystemConfig{Workers: 1})
	var order strings.Builder
	var all sync.WaitGroup
	turn := func(name string) func() {
		return func() { order.WriteString(name); all.Done() }
	}
	a := spawnGroup(t, sys, "a", repeat(size, turn("a"))...)
	b := spawnGroup(t, sys, "b", repeat(size, turn("b"))...)
	all.Add(2 * size)

	release := holdWorker(sys)
	actors.WakeAll(sys.Pool(), a)
	actors.WakeAll(sys.Pool(), b)
	release()
	all.Wait()
	one, other := strings.Repeat("a", share), strings.Repeat("b", share)
	require.Equal(t, strings.Repeat(other+one, size/share), order.String())
}

// Each of the two groups is idle while the other has its turn.
func TestPool_GroupsThatWakeEachOtherLeaveAThirdItsShare(t *testing.T) {
	const size, limit = 100, 10_000
	sys := newSystem(t, actors.SystemConfig{Workers: 1})
	var pings, left = 0, size // touched by turns only, on the only worker
	done := make(chan int, 1)
	busy := spawnGroup(t, sys, "busy", repeat(size, func() {
		if left--; left == 0 {
			done <- pings
		}
	})...)
	var ping, pong []*actors.WakeBox
	bounce := func(to *[]*actors.WakeBox) func() {
		return func() {
			if pings++; left > 0 && pings < limit {
				(*to)[0].Wake()
			}
		}
	}
	ping = spawnGroup(t, sys, "ping", bounce(&pong))
	pong = spawnGroup(t, sys, "pong", bounce(&ping))

	release := holdWorker(sys)
	actors.WakeAll(sys.Pool(), busy)
	ping[0].Wake()
	release()
	require.Less(t, <-done, 2*size)
}

// Two actors of one group that wake each other have the share of their group.
func TestPool_AnEndlessExchangeInOneGroupLeavesAnotherItsShare(t *testing.T) {
	const size, limit = 100, 10_000
	sys := newSystem(t, actors.SystemConfig{Workers: 1})
	var pings, left = 0, size
	done := make(chan int, 1)
	var pair []*actors.WakeBox
	bounce := func(to int) func() {
		return func() {
			if pings++; left > 0 && pings < limit {
				pair[to].Wake()
			}
		}
	}
	pair = spawnGroup(t, sys, "pair", bounce(1), bounce(0))
	busy := spawnGroup(t, sys, "busy", repeat(size, func() {
		if left--; left == 0 {
			done <- pings
		}
	})...)

	release := holdWorker(sys)
	pair[0].Wake()
	actors.WakeAll(sys.Pool(), busy)
	release()
	require.LessOrEqual(t, <-done, 2*size)
}

func TestPool_AChildBelongsToTheGroupOfItsAncestors(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{Workers: 1})
	var order strings.Builder
	var all sync.WaitGroup
	note := func(name string) do {
		return run(name, func(*actors.Context) { order.WriteString(name); all.Done() })
	}
	family := func(name string) []*actors.Ref[do] {
		spawned := make(chan *actors.Ref[do])
		parent := spawnProbe(sys, &probe{journal: new(journal), name: name}, actors.Options{Executor: sys.Blocking()})
		var refs []*actors.Ref[do]
		for range 3 {
			parent.Tell(run("", func(ctx *actors.Context) {
				spawned <- spawnProbe(ctx, &probe{journal: new(journal), name: name}, actors.Options{})
			}))
			parent = <-spawned
			refs = append(refs, parent)
		}
		settled := make(chan struct{})
		parent.Tell(run("", func(*actors.Context) { close(settled) }))
		<-settled
		return refs
	}
	a, b := family("a"), family("b")
	all.Add(6)
	release := holdWorker(sys)
	for i := range a {
		a[i].Tell(note("a"))
		b[i].Tell(note("b"))
	}
	release()
	all.Wait()
	require.Equal(t, "bbbaaa", order.String(), "b was idle last, so it is served next, and not interrupted")
}

// Actors of one group run on two pools, of which only one is their system's.
func TestPool_ServesAGroupOfItsOwnSystemOnly(t *testing.T) {
	const size, rounds = 20, 200
	sys, pool := newSystem(t, actors.SystemConfig{}), actors.NewPool(2)
	var all sync.WaitGroup
	boxes := map[actors.Executor][]*actors.WakeBox{}
	spawned := make(chan error)
	parent := actors.Spawn(sys, "parent", newRunner, actors.Options{})
	parent.Tell(func(ctx *actors.Context) {
		var failed error
		for range size {
			for _, exec := range []actors.Executor{sys.Pool(), pool} {
				w := &counter{wg: &all}
				failed = errors.Join(failed, actors.SpawnWake(ctx, w, &w.WakeBox, exec))
				boxes[exec] = append(boxes[exec], &w.WakeBox)
			}
		}
		spawned <- failed
	})
	require.NoError(t, <-spawned)
	for range rounds {
		all.Add(2 * size)
		var both sync.WaitGroup
		for exec, some := range boxes {
			both.Go(func() { actors.WakeAll(exec, some) })
		}
		both.Wait()
		all.Wait()
	}
	require.NoError(t, sys.Close(t.Context()))
	pool.Close()
}

// Wakes that cross between groups, from turns and from outside, are not lost.
func TestPool_LosesNothingBetweenGroups(t *testing.T) {
	const groups, each, rounds = 6, 20, 300
	sys := newSystem(t, actors.SystemConfig{Workers: 2})
	var published atomic.Int64
	done := make(chan struct{}, groups*each)
	var all [groups][]*actors.WakeBox
	for g := range all {
		turns := make([]func(), each)
		for i := range turns {
			seen := int64(0) // written without a lock: -race finds turns that overlap
			turns[i] = func() {
				before := seen
				seen = published.Load()
				if seen == groups*rounds && before != seen {
					done <- struct{}{}
				}
				if next := all[(g+1)%groups]; before != seen && next != nil {
					next[i].Wake()
				}
			}
		}
		all[g] = spawnGroup(t, sys, fmt.Sprint("group", g), turns...)
	}
	var writers sync.WaitGroup
	for g := range all {
		writers.Go(func() {
			for range rounds {
				published.Add(1)
				actors.WakeAll(sys.Pool(), all[g])
			}
		})
	}
	writers.Wait()
	for _, boxes := range all {
		actors.WakeAll(sys.Pool(), boxes)
	}
	for range groups * each {
		<-done
	}
}

// WakeAll submits boxes of one group at a time.
func TestWakeAll_WakesBoxesOfSeveralGroups(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	var all sync.WaitGroup
	var boxes []*actors.WakeBox
	for i := range 10 {
		boxes = append(boxes, spawnGroup(t, sys, fmt.Sprint(i), repeat(30, all.Done)...)...)
	}
	for range 10 {
		all.Add(len(boxes))
		actors.WakeAll(sys.Pool(), boxes)
		all.Wait()
	}
}

func TestPool_AGroupGoesOnAfterATurnThatExits(t *testing.T) {
	var failed failures
	sys := newSystem(t, actors.SystemConfig{Workers: 1, OnFailure: failed.add})
	var all sync.WaitGroup
	turns := repeat(50, func() { all.Done() })
	turns[0] = func() { all.Done(); runtime.Goexit() }
	boxes := spawnGroup(t, sys, "a", turns...)
	other := spawnGroup(t, sys, "b", repeat(50, func() { all.Done() })...)
	all.Add(100)
	release := holdWorker(sys)
	actors.WakeAll(sys.Pool(), append(boxes, other...))
	release()
	all.Wait()
}
