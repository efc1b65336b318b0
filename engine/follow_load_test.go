package engine_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Every writer's change reaches every follower, whatever happens to their watches.
func TestFollow_ConvergesUnderLoad(t *testing.T) {
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Window = engine.Window{MaxEvents: 16, ChunkSize: 4} })
	policies := []engine.Policy{engine.Park, engine.Terminate, engine.Conflate}
	const writes = 3000
	type outcome struct {
		state map[string]int
		err   error
	}
	done := make(chan outcome)
	for n := range 12 {
		opts := engine.WatchOptions{Policy: policies[n%len(policies)], Buffer: 1 + n}
		go func() {
			state := map[string]int{}
			for up, err := range engine.Follow(ctx, e, opts) {
				if err != nil {
					done <- outcome{state, err}
					return
				}
				if up.List != nil {
					clear(state)
					for _, o := range up.List.Items {
						state[o.Key] = o.Value.N
					}
				}
				for _, ev := range up.Events {
					state[ev.Key()] = ev.Object.Value.N
				}
				if state["last"] == writes {
					break
				}
			}
			done <- outcome{state, nil}
		}()
	}
	want := map[string]int{"last": writes}
	for n := range writes {
		key := fmt.Sprint(n % 7)
		_, err := e.Put(ctx, pod{Name: key, N: n})
		require.NoError(t, err)
		want[key] = n
	}
	_, err := e.Put(ctx, pod{Name: "last", N: writes})
	require.NoError(t, err)
	for range 12 {
		o := <-done
		require.NoError(t, o.err)
		require.Equal(t, want, o.state)
	}
}

// Without a cache, too, where the backend's watches break and expire, and its history is short.
func TestFollow_ConvergesWithoutACache(t *testing.T) {
	history, err := memory.New(cfg().Schema(), memory.Options{FirstRevision: 1, Retain: engine.Window{MaxEvents: 16, ChunkSize: 4}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, history.Close()) })
	storage := faulty.New(history, faulty.Options{})
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.NoCache, c.Backend = true, storage })
	const followers, writes = 4, 1000
	states, errs := make([]map[string]int, followers), make([]error, followers)
	var all sync.WaitGroup
	for n := range followers {
		all.Go(func() {
			states[n], errs[n] = copyUntil(engine.Follow(ctx, e, engine.WatchOptions{Buffer: 1 + n}), "last")
		})
	}
	want, random := map[string]int{"last": 1}, rand.New(rand.NewPCG(1, 1))
	for n := range writes {
		key := fmt.Sprint(n % 7)
		if want[key] > 0 && random.IntN(5) == 0 {
			_, err = e.Delete(ctx, key, engine.DeleteOptions{})
			delete(want, key)
		} else {
			_, err = e.Put(ctx, pod{Name: key, N: n + 1})
			want[key] = n + 1
		}
		require.NoError(t, err)
		switch random.IntN(50) {
		case 0:
			storage.BreakWatches(nil)
		case 1:
			storage.ExpireWatches()
		}
	}
	_, err = e.Create(ctx, pod{Name: "last", N: 1})
	require.NoError(t, err)
	all.Wait()
	for n := range followers {
		require.NoError(t, errs[n])
		require.Equal(t, want, states[n])
	}
}

// copyUntil returns the state that a follower has when there is an object of that key.
func copyUntil(follow iter.Seq2[engine.Update[pod], error], key string) (state map[string]int, end error) {
	state = map[string]int{}
	for up, err := range follow {
		if err != nil {
			return state, err
		}
		if up.List != nil {
			clear(state)
			for _, o := range up.List.Items {
				state[o.Key] = o.Value.N
			}
		}
		for _, ev := range up.Events {
			if state[ev.Key()] = ev.Object.Value.N; ev.Type == engine.Deleted {
				delete(state, ev.Key())
			}
		}
		if state[key] > 0 {
			break
		}
	}
	return state, nil
}
