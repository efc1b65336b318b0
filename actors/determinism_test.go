package actors_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

// trace runs a random program of actors that spawn, talk, fail, wait, stop and
// wake each other, and returns a hash of all that they did, in order, and how
// much that was. The program is always the same; the seed is the executor's.
func trace(t *testing.T, seed uint64) (hash uint64, steps int) {
	seeded := actors.NewSeeded(seed)
	clock := actors.NewVirtualClock(start)
	w := &world{rng: rand.New(rand.NewPCG(1, 2)), budget: 2_000}
	sys, err := actors.NewSystem(actors.SystemConfig{
		Executor: seeded, Clock: clock,
		Logger:    slog.New(slog.DiscardHandler),
		OnFailure: func(f actors.Failure) { w.note("%s failed: %v: %v", f.Actor, f.Reason, f.Directive) },
	})
	require.NoError(t, err)
	for round := range 200 {
		if round%10 == 0 { // lest they all stop each other early
			w.spawn(sys)
		}
		seeded.Run()
		clock.Advance(time.Second)
	}
	require.NoError(t, sys.Close(context.Background()))
	require.Zero(t, sys.Actors())
	h := fnv.New64a()
	for _, line := range w.lines {
		fmt.Fprintln(h, line)
	}
	return h.Sum64(), len(w.lines)
}

// world is what the citizens of the random program share. Only one turn runs
// at a time, so it needs no lock.
type world struct {
	journal
	rng    *rand.Rand
	refs   []*actors.Ref[int]
	budget int
}

func (w *world) spawn(parent actors.Parent) {
	name := fmt.Sprint("c", len(w.refs))
	w.refs = append(w.refs, actors.Spawn(parent, name, func() actors.Behavior[int] { return &citizen{world: w} }, actors.Options{Capacity: 4}))
}

func (w *world) any() *actors.Ref[int] { return w.refs[w.rng.IntN(len(w.refs))] }

// citizen does something random for every message, as long as there is budget.
type citizen struct {
	actors.WakeBox
	*world
}

func (c *citizen) Receive(ctx *actors.Context, m int) {
	c.note("%s got %d at %d", ctx.Name(), m, ctx.Clock().Now().Unix())
	if c.budget--; c.budget < 0 {
		return
	}
	switch other := c.any(); c.rng.IntN(12) {
	case 0:
		c.spawn(ctx)
	case 1:
		panic("bad luck")
	case 2:
		other.Stop()
	case 3:
		w := &citizen{world: c.world}
		if actors.SpawnWake(ctx, w, &w.WakeBox, nil) == nil {
			w.Wake()
		}
	case 4, 5:
		ctx.Clock().AfterFunc(time.Duration(c.rng.IntN(5_000))*time.Millisecond, func() { c.any().Tell(m + 1) })
	default:
		c.note("offer %v", other.Offer(m+1))
		c.any().Tell(m + 2)
	}
}

func (c *citizen) Woken(ctx *actors.Context) bool {
	c.note("%s woken", ctx.Name())
	c.any().Tell(0)
	return c.rng.IntN(2) == 0
}

func (c *citizen) Started(ctx *actors.Context) { c.note("%s started", ctx.Name()); c.any().Tell(1) }
func (c *citizen) Flush(ctx *actors.Context)   { c.note("%s flush", ctx.Name()) }
func (c *citizen) Stopped(ctx *actors.Context) { c.note("%s stopped", ctx.Name()) }
func (c *citizen) Dropped(m int)               { c.note("dropped %d", m) }
func (c *citizen) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Directive(c.rng.IntN(3))
}

func TestOneSeedIsOneExecution(t *testing.T) {
	hashes := map[uint64]bool{}
	for seed := range uint64(20) {
		first, steps := trace(t, seed)
		again, _ := trace(t, seed)
		require.Equal(t, first, again, "seed %d", seed)
		require.Greater(t, steps, 100, "seed %d: the program is not worth its name", seed)
		hashes[first] = true
	}
	require.Greater(t, len(hashes), 15, "different seeds must be different executions")
}
