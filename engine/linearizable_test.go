package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/linearizability"
)

// call is one operation on one key, and answer what came of it. A list is one
// call for each key: what it shows of that key.
type call struct {
	verb string // "create", "put", "update", "delete" or "read"
	key  string
	n    int // the value written
}

type answer struct {
	n   int // the value read or deleted; zero for none
	err error
}

// registers is the contract for one key, as plainly as it can be said: it holds
// one value or, zero, none.
var registers = porcupine.Model{
	Partition: linearizability.ByKey(func(c call) string { return c.key }),
	Init:      func() any { return 0 },
	Step:      func(state, input, output any) (bool, any) { return step(state.(int), input.(call), output.(answer)) },
}

// step reports whether a key that holds n may answer c with a, and what it
// holds then.
func step(n int, c call, a answer) (bool, int) {
	switch c.verb {
	case "create":
		if n != 0 {
			return errors.Is(a.err, engine.ErrExists), n
		}
		return a.err == nil, c.n
	case "put":
		return a.err == nil, c.n
	}
	if n == 0 {
		return errors.Is(a.err, engine.ErrNotFound) || c.verb == "read" && a == answer{}, n
	}
	switch c.verb {
	case "update":
		return a.err == nil && a.n == n, c.n
	case "delete":
		return a.err == nil && a.n == n, 0
	}
	return a.err == nil && a.n == n, n
}

// perform makes the call.
func perform(e *engine.Engine[pod], c call) (a answer) {
	ctx := context.Background()
	switch c.verb {
	case "create":
		_, a.err = e.Create(ctx, pod{Name: c.key, N: c.n})
	case "put":
		_, a.err = e.Put(ctx, pod{Name: c.key, N: c.n})
	case "update":
		_, a.err = e.Update(ctx, c.key, func(was pod) (pod, error) {
			a.n = was.N
			return pod{Name: c.key, N: c.n}, nil
		}, engine.UpdateOptions{})
	case "delete":
		var o *engine.Object[pod]
		if o, a.err = e.Delete(ctx, c.key, engine.DeleteOptions{}); a.err == nil {
			a.n = o.Value.N
		}
	case "read":
		var o *engine.Object[pod]
		if o, a.err = e.Get(ctx, c.key, engine.GetOptions{}); a.err == nil {
			a.n = o.Value.N
		}
	}
	return a
}

var registerKeys = []string{"a", "b", "c"}

// operate has goroutines call at random, and returns what was called when: by a
// counter, not a clock.
func operate(t *testing.T, e *engine.Engine[pod], goroutines, each int) []porcupine.Operation {
	var moment, value atomic.Int64
	var mu sync.Mutex
	var history []porcupine.Operation
	note := func(g int, c call, a answer, called, returned int64) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{ClientId: g, Input: c, Output: a, Call: called, Return: returned})
	}
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(g)))
			for range each {
				called := moment.Add(1)
				verb := []string{"create", "put", "update", "delete", "read", "list"}[random.IntN(6)]
				if verb != "list" {
					c := call{verb, registerKeys[random.IntN(len(registerKeys))], int(value.Add(1))}
					a := perform(e, c)
					note(g, c, a, called, moment.Add(1))
					continue
				}
				shown, err := listed(e, random.IntN(2) == 0)
				if err != nil {
					t.Error(err)
					return
				}
				returned := moment.Add(1)
				for _, key := range registerKeys {
					note(g, call{verb: "read", key: key}, answer{n: shown[key]}, called, returned)
				}
			}
		})
	}
	all.Wait()
	return history
}

// listed returns the values of a linearizable list, whole or by pages. Pages start
// again when so much was written in between that history has left them behind.
func listed(e *engine.Engine[pod], whole bool) (map[string]int, error) {
	shown := map[string]int{}
	opts := engine.ListOptions{Limit: 2}
	if whole {
		opts.Limit = 0
	}
	for {
		l, err := e.List(context.Background(), opts)
		if errors.Is(err, engine.ErrExpired) && opts.Continue != "" {
			clear(shown)
			opts.Continue = ""
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, o := range l.Items {
			shown[o.Key] = o.Value.N
		}
		if opts.Continue = l.Continue; opts.Continue == "" {
			return shown, nil
		}
	}
}

func TestLinearizable_Calls(t *testing.T) {
	for name, adjust := range map[string]func(*engine.Config[pod]){
		"with a cache":    func(*engine.Config[pod]) {},
		"without":         func(c *engine.Config[pod]) { c.NoCache = true },
		"with hardly any": func(c *engine.Config[pod]) { c.Window.MaxEvents = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			c := cfg()
			adjust(&c)
			e, err := engine.New(c)
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			require.True(t, porcupine.CheckOperations(registers, operate(t, e, 4, 100)))
		})
	}
}

// The check is worth nothing if it takes everything for linearizable.
func TestLinearizable_CheckFindsWhatIsNot(t *testing.T) {
	put := porcupine.Operation{Input: call{"put", "k", 1}, Output: answer{}, Call: 1, Return: 2}
	for name, op := range map[string]porcupine.Operation{
		"a stale read":     {Input: call{verb: "read", key: "k"}, Output: answer{n: 0}, Call: 3, Return: 4},
		"a lost update":    {Input: call{"update", "k", 3}, Output: answer{n: 2}, Call: 3, Return: 4},
		"a second create":  {Input: call{"create", "k", 2}, Output: answer{}, Call: 3, Return: 4},
		"a ghost's delete": {Input: call{verb: "delete", key: "k"}, Output: answer{err: engine.ErrNotFound}, Call: 3, Return: 4},
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, porcupine.CheckOperations(registers, []porcupine.Operation{put, op}))
		})
	}
}
