package actors

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
)

// registered counts the processes that protoactor knows.
func registered(s *System) (n int) {
	for _, bucket := range s.proto.ProcessRegistry.LocalPIDs.LocalPIDs {
		n += bucket.Count()
	}
	return n
}

// spawner calls the functions that it receives and restarts its children.
type spawner struct{}

func (spawner) Receive(ctx *Context, f func(*Context))  { f(ctx) }
func (spawner) ChildFailed(*Context, ID, any) Directive { return Restart }
func newSpawner() Behavior[func(*Context)]              { return spawner{} }

// A leaked actor has no goroutine, so only a count of actors shows it. That count
// must agree with protoactor's registry.
func TestSystem_ActorsAgreesWithTheRegistry(t *testing.T) {
	seeded := NewSeeded(1)
	s, err := NewSystem(SystemConfig{Executor: seeded})
	require.NoError(t, err)
	base := registered(s)
	for range 3 {
		Spawn(s, "a", newSpawner, Options{}).Tell(func(ctx *Context) {
			Spawn(ctx, "b", newSpawner, Options{})
		})
	}
	seeded.Run()
	require.Equal(t, 6, s.Actors())
	require.Equal(t, base+6, registered(s))
	require.NoError(t, s.Close(context.Background()))
	require.Zero(t, s.Actors())
	require.Equal(t, base-1, registered(s), "without the top actor")
}

// With protoactor's own subscriptions a dead letter starts a goroutine that
// sleeps for a second.
func TestSystem_ADeadLetterStartsNoGoroutine(t *testing.T) {
	s, err := NewSystem(SystemConfig{Executor: NewSeeded(1)})
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	s.proto.Root.Send(actor.NewPID("nonhost", "none"), "hello")
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
	require.NoError(t, s.Close(context.Background()))
}

// fragile is a spawner that panics when it is started for the first time.
type fragile struct {
	spawner
	starts *int
}

func (f fragile) Started(*Context) {
	if *f.starts++; *f.starts == 1 {
		panic("not yet")
	}
}

// An actor that has failed waits for its parent's decision without a turn, whether
// it has messages left or gets more.
func TestSupervision_ASuspendedActorTakesNoTurns(t *testing.T) {
	for left := range 2 {
		seeded := NewSeeded(1)
		s, err := NewSystem(SystemConfig{Executor: seeded, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		var child *Ref[func(*Context)]
		starts, handled := 0, 0
		Spawn(s, "parent", newSpawner, Options{}).Tell(func(ctx *Context) {
			child = Spawn(ctx, "child", func() Behavior[func(*Context)] { return fragile{starts: &starts} }, Options{})
			for range left {
				child.Tell(func(*Context) { handled++ })
			}
		})
		for child == nil || !child.queue.is(suspended) {
			require.Equal(t, 1, seeded.RunN(1))
		}
		require.Equal(t, 1, seeded.Pending(), "the parent alone has something to do, with %d left", left)
		child.Tell(func(*Context) { handled++ })
		require.Equal(t, 1, seeded.Pending(), "with %d left", left)
		require.Zero(t, handled)
		seeded.Run()
		require.Equal(t, left+1, handled, "it was restarted with its queue")
		require.NoError(t, s.Close(context.Background()))
	}
}

// Stops that meet failures and other stops at any moment start no goroutine
// either, and leave no actor.
func TestSystem_StopsAndFailuresInAnyOrderLeaveNothing(t *testing.T) {
	for seed := range uint64(40) {
		before := runtime.NumGoroutine()
		seeded := NewSeeded(seed)
		s, err := NewSystem(SystemConfig{Executor: seeded, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		base := registered(s)
		parent := Spawn(s, "parent", newSpawner, Options{})
		var child *Ref[func(*Context)]
		parent.Tell(func(ctx *Context) {
			child = Spawn(ctx, "child", newSpawner, Options{})
			child.Tell(func(*Context) { panic("boom") })
		})
		for child == nil {
			seeded.RunN(1)
		}
		seeded.RunN(int(seed % 7))
		child.Stop()
		parent.Tell(func(*Context) { child.Stop() })
		seeded.RunN(int(seed % 5))
		child.Stop()
		parent.Stop()
		require.NoError(t, s.Close(context.Background()))
		child.Stop()
		require.Zero(t, s.Actors(), "seed %d", seed)
		require.Equal(t, base-1, registered(s), "seed %d", seed)
		require.LessOrEqual(t, runtime.NumGoroutine(), before)
	}
}

// Protoactor would restart an actor that is stopping once its children have stopped:
// it would have no behavior and never end.
func TestSupervision_AStopBeforeTheRestartWins(t *testing.T) {
	for turns := range 12 {
		seeded := NewSeeded(1)
		s, err := NewSystem(SystemConfig{Executor: seeded, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		var parent *Ref[func(*Context)]
		Spawn(s, "top", newSpawner, Options{}).Tell(func(ctx *Context) { parent = Spawn(ctx, "parent", newSpawner, Options{}) })
		seeded.Run()
		parent.Tell(func(ctx *Context) { Spawn(ctx, "child", newSpawner, Options{}) })
		seeded.Run()
		parent.Tell(func(*Context) { panic("boom") })
		seeded.RunN(turns)
		parent.Stop()
		seeded.Run()
		require.Equal(t, 1, s.Actors(), "told to stop after %d turns", turns)
		require.NoError(t, s.Close(context.Background()))
	}
}

// failingWaker fails whenever it is woken.
type failingWaker struct{ WakeBox }

func (*failingWaker) Woken(*Context) bool { panic("boom") }

// The same with wake actors, which protoactor knows only as one child of their parent.
func TestSystem_StopsAndFailuresOfWakeActorsInAnyOrderLeaveNothing(t *testing.T) {
	const wakers = 5
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		seeded := NewSeeded(seed)
		s, err := NewSystem(SystemConfig{Executor: seeded, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		base := registered(s)
		top := Spawn(s, "top", newSpawner, Options{})
		var parent *Ref[func(*Context)]
		top.Tell(func(ctx *Context) { parent = Spawn(ctx, "parent", newSpawner, Options{}) })
		seeded.Run()
		boxes := make([]failingWaker, wakers)
		for i := range boxes {
			parent.Tell(func(ctx *Context) { _ = SpawnWake(ctx, &boxes[i], &boxes[i].WakeBox, nil) })
		}
		if random.IntN(2) == 0 {
			seeded.Run()
			require.Equal(t, wakers+2, s.Actors())
			require.Equal(t, base+3, registered(s), "the actors with queues, and one process for all others")
		}
		for range random.IntN(12) {
			switch box := &boxes[random.IntN(wakers)]; random.IntN(6) {
			case 0, 1:
				box.Wake()
			case 2:
				box.Stop()
			case 3:
				parent.Tell(func(*Context) { panic("restart") })
			case 4:
				top.Tell(func(*Context) { parent.Stop() })
			case 5:
				seeded.RunN(random.IntN(6))
			}
		}
		if random.IntN(2) == 0 {
			seeded.Run()
			require.Equal(t, s.Actors() == 1, !parent.Alive(), "seed %d", seed)
		}
		require.NoError(t, s.Close(context.Background()))
		require.Zero(t, s.Actors(), "seed %d", seed)
		require.Equal(t, base-1, registered(s), "seed %d", seed)
	}
}

// A mark that is never removed would slow down every turn of the pool.
func TestWatchdog_LeavesNoMark(t *testing.T) {
	clock := clock.NewVirtual(time.Unix(0, 0))
	// The only worker has removed its last mark before it takes the next turn.
	s, err := NewSystem(SystemConfig{Workers: 1, Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ref := Spawn(s, "a", newSpawner, Options{})
	for range 3 {
		entered, leave := make(chan struct{}), make(chan struct{})
		ref.Tell(func(*Context) { close(entered); <-leave })
		<-entered
		clock.Advance(3 * time.Second)
		require.EqualValues(t, markUnit, s.owned.pool.attention.Load())
		close(leave)
	}
	require.NoError(t, s.Close(context.Background()))
	require.Zero(t, s.owned.pool.attention.Load())
}

// calls is a task.
type calls func()

func (f calls) RunTurn() { f() }

// holdOnlyWorker has a worker of a pool of one wait, after the turns before, until the result is called.
func holdOnlyWorker(s *System) (release func()) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s.Pool().Submit(calls(func() { close(entered); <-leave }))
	<-entered
	return func() { close(leave) }
}

// While the sender of an Ask is on its way from the queue to the turn, a worker may handle its message.
// It then leaves what others have sent since to the workers, whose code it would otherwise run.
func TestAsk_LeavesTheMessagesOfOthersToTheWorkers(t *testing.T) {
	s, err := NewSystem(SystemConfig{Workers: 1, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	handled, others := make(chan struct{}), make(chan struct{})
	ref := Spawn(s, "a", newSpawner, Options{})
	ref.Tell(func(*Context) { close(handled) })
	<-handled
	holdOnlyWorker(s)()

	handled = make(chan struct{})
	begins, ok := ref.inbox.tell(func(*Context) { close(handled) }) // as Ask does
	require.True(t, ok)
	require.NotZero(t, begins)
	ref.queue.wake() // by another sender, whose message is not there yet
	<-handled
	release := holdOnlyWorker(s)
	_, ok = ref.inbox.tell(func(*Context) { close(others) })
	require.True(t, ok)
	ref.queue.runOrWake(begins)
	require.Equal(t, 1, ref.Len())
	release()
	<-others
	require.NoError(t, s.Close(context.Background()))
}

// A burst of Tells, which no capacity bounds, leaves no memory behind in an idle actor.
func TestInbox_ABurstLeavesNoMemoryBehind(t *testing.T) {
	var b inbox[[1024]byte]
	b.state.capacity = 4
	for range 3 {
		for range 1000 {
			_, ok := b.tell([1024]byte{})
			require.True(t, ok)
		}
		for range 1000 {
			_, ok := b.next()
			require.True(t, ok)
		}
		_, ok := b.next()
		require.False(t, ok)
		require.LessOrEqual(t, cap(b.in), 8)
		require.LessOrEqual(t, cap(b.out), 8)
	}
}

func TestInbox_ReusesItsMemoryWithinTheCapacity(t *testing.T) {
	for _, capacity := range []int{4, math.MaxInt} {
		var b inbox[int]
		b.state.capacity = capacity
		exchange := func() {
			for m := range 4 {
				require.Equal(t, Accepted, b.offer(m))
			}
			for m := range 4 {
				got, ok := b.next()
				require.True(t, ok)
				require.Equal(t, m, got)
			}
			_, ok := b.next()
			require.False(t, ok)
		}
		exchange()
		exchange()
		require.Zero(t, testing.AllocsPerRun(100, exchange), capacity)
	}
}

// A producer that was refused waits for room. Another one, which finds room while it is being
// refused, takes the place and not the announcement.
func TestInbox_AnOfferThatFindsRoomTakesNoOthersAnnouncement(t *testing.T) {
	const capacity = 4
	for range 1000 {
		var b inbox[int]
		b.state.capacity = capacity
		for range capacity {
			require.Equal(t, Accepted, b.offer(1))
		}
		_, _ = b.next() // so that the next one takes no lock
		require.Equal(t, Accepted, b.offer(1))
		require.Equal(t, Full, b.offer(1), "the one that waits")
		var begun atomic.Bool
		var other sync.WaitGroup
		other.Go(func() {
			begun.Store(true)
			for b.offer(1) == Full {
				runtime.Gosched()
			}
		})
		for !begun.Load() {
			runtime.Gosched()
		}
		_, _ = b.next()
		other.Wait()
		announced := b.state.roomMade()
		for _, left := b.next(); left; _, left = b.next() {
			announced = b.state.roomMade() || announced
		}
		require.True(t, announced)
	}
}
