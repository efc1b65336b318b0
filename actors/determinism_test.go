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
	"github.com/watchmill/watchmill/clock"
)

// trace runs a random program of actors that spawn, send, fail, wait, stop and
// wake each other, and run each other's turns. It returns a hash of all their steps,
// in order, and the number of steps. The program is always the same; the seed is the
// executor's.
func trace(t *testing.T, seed uint64) (hash uint64, steps int) {
	seeded := actors.NewSeeded(seed)
	clock := clock.NewVirtual(start)
	w := &randomProgram{executor: seeded, rng: rand.New(rand.NewPCG(1, 2)), budget: 2_000}
	sys, err := actors.NewSystem(actors.SystemConfig{
		Executor: seeded, Clock: clock,
		Logger:    slog.New(slog.DiscardHandler),
		OnFailure: func(f actors.Failure) { w.note("%s failed: %v: %v", f.Actor, f.Reason, f.Directive) },
	})
	require.NoError(t, err)
	for round := range 200 {
		if round%10 == 0 { // so that some are left when they stop each other early
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

// randomProgram is the state that the random actors share. Only one turn runs at
// a time, so it needs no lock.
type randomProgram struct {
	journal
	executor *actors.Seeded
	rng      *rand.Rand
	refs     []*actors.Ref[int]
	budget   int
}

func (w *randomProgram) spawn(parent actors.Parent) {
	name := fmt.Sprint("c", len(w.refs))
	w.refs = append(w.refs, actors.Spawn(parent, name, func() actors.Behavior[int] { return &randomActor{randomProgram: w} }, actors.Options{Capacity: 4}))
}

func (w *randomProgram) pick() *actors.Ref[int] { return w.refs[w.rng.IntN(len(w.refs))] }

// randomActor does something random for every message, as long as there is budget.
type randomActor struct {
	actors.WakeBox
	*randomProgram
}

func (c *randomActor) Receive(ctx *actors.Context, m int) {
	c.note("%s got %d at %d", ctx.Name(), m, ctx.Clock().Now().Unix())
	if c.budget--; c.budget < 0 {
		return
	}
	switch other := c.pick(); c.rng.IntN(13) {
	case 0:
		c.spawn(ctx)
	case 1:
		panic("bad luck")
	case 2:
		other.Stop()
	case 3:
		w := &randomActor{randomProgram: c.randomProgram}
		if actors.SpawnWake(ctx, w, &w.WakeBox, nil) == nil {
			w.Wake()
		}
	case 4, 5:
		ctx.Clock().AfterFunc(time.Duration(c.rng.IntN(5_000))*time.Millisecond, func() { c.pick().Tell(m + 1) })
	case 6:
		c.note("ran %d turns", c.executor.RunN(c.rng.IntN(3)))
	default:
		c.note("offer %v", other.Offer(m+1))
		c.pick().Tell(m + 2)
	}
}

func (c *randomActor) Woken(ctx *actors.Context) bool {
	c.note("%s woken", ctx.Name())
	c.pick().Tell(0)
	return c.rng.IntN(2) == 0
}

func (c *randomActor) Started(ctx *actors.Context) {
	c.note("%s started", ctx.Name())
	c.pick().Tell(1)
}
func (c *randomActor) Flush(ctx *actors.Context)   { c.note("%s flush", ctx.Name()) }
func (c *randomActor) Stopped(ctx *actors.Context) { c.note("%s stopped", ctx.Name()) }
func (c *randomActor) Dropped(m int)               { c.note("dropped %d", m) }
func (c *randomActor) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Directive(c.rng.IntN(3))
}

func TestSeeded_OneSeedIsOneExecution(t *testing.T) {
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
