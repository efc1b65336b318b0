package memory_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/internal/linearizability"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// call is one operation on one key, and answer what came of it.
type call struct {
	verb   string // "get", "put" or "remove"
	key    string
	expect store.Revision
}

type answer struct {
	revision store.Revision // of the object returned
	err      error
}

// register is what a key holds by the model: its revision, zero for nothing,
// and the newest that it ever had.
type register struct{ now, newest store.Revision }

// model is the contract of Get, Put and Remove for one key, as plainly as it
// can be said.
var model = porcupine.Model{
	Partition: linearizability.ByKey(func(c call) string { return c.key }),
	Init:      func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		return step(state.(register), input.(call), output.(answer))
	},
}

// step reports whether in state r the call c may be answered with a, and the
// state after it.
func step(r register, c call, a answer) (bool, register) {
	if c.verb == "get" {
		if r.now == 0 {
			return errors.Is(a.err, store.ErrNotFound), r
		}
		return a.err == nil && a.revision == r.now, r
	}
	switch {
	case c.expect == r.now:
		after := register{now: a.revision, newest: a.revision}
		if c.verb == "remove" {
			after.now = 0
		}
		return a.err == nil && a.revision > r.newest, after
	case c.expect == 0:
		return errors.Is(a.err, store.ErrExists), r
	case r.now == 0:
		return errors.Is(a.err, store.ErrNotFound), r
	}
	return errors.Is(a.err, store.ErrConflict), r
}

// perform makes the call on b.
func perform(b *memory.Backend, c call) answer {
	var o, prev *store.Object
	var err error
	if c.expect != 0 {
		prev = &store.Object{Key: c.key, Revision: c.expect}
	}
	switch c.verb {
	case "get":
		o, err = b.Get(context.Background(), c.key)
	case "put":
		o, err = b.Put(context.Background(), newLamp(c.key, false), prev, backend.PutOptions{})
	case "remove":
		o, err = b.Remove(context.Background(), prev)
	}
	if err != nil {
		return answer{err: err}
	}
	return answer{revision: o.Revision}
}

// history lets goroutines call at random, and returns the calls with their times, by a
// counter, not a clock.
func history(b *memory.Backend, goroutines, each int) []porcupine.Operation {
	var moment atomic.Int64
	histories := make([][]porcupine.Operation, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			known := map[string]store.Revision{}
			for range each {
				c := call{verb: []string{"get", "put", "put", "remove"}[random.IntN(4)], key: fmt.Sprint("k", random.IntN(3))}
				c.expect = known[c.key]
				if c.verb == "remove" && c.expect == 0 {
					c.verb = "get"
				}
				called := moment.Add(1)
				a := perform(b, c)
				histories[g] = append(histories[g], porcupine.Operation{ClientId: g, Input: c, Output: a, Call: called, Return: moment.Add(1)})
				if known[c.key] = a.revision; c.verb == "remove" {
					known[c.key] = 0
				}
			}
		})
	}
	wg.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h...)
	}
	return all
}

func TestLinearizable_ReadsAndWrites(t *testing.T) {
	f := newFixture(t, memory.Options{})
	require.True(t, porcupine.CheckOperations(model, history(f.Backend, 4, 200)))
}

// The check is worth nothing if it takes everything for linearizable.
func TestLinearizable_StaleReadIsFound(t *testing.T) {
	require.False(t, porcupine.CheckOperations(model, []porcupine.Operation{
		{Input: call{verb: "put", key: "k"}, Output: answer{revision: 2}, Call: 1, Return: 2},
		{Input: call{verb: "put", key: "k", expect: 2}, Output: answer{revision: 3}, Call: 3, Return: 4},
		{Input: call{verb: "get", key: "k"}, Output: answer{revision: 2}, Call: 5, Return: 6},
	}))
}
