package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// loop ranges over something until take returns false, and fails with the error of
// the last pair.
type loop func(take func(n int) bool) error

// loops are all that can be ranged over, each over the numbers that write writes.
// running returns how many watches run.
var loops = map[string]func(t *testing.T, ctx context.Context) (write func(n int), over loop, running func() int){
	"Watch.Events": func(t *testing.T, ctx context.Context) (func(int), loop, func() int) {
		e, _ := newEngine(t, nil)
		w, err := e.Watch(ctx, engine.WatchOptions{})
		require.NoError(t, err)
		events := w.Events()
		return putter(t, e), func(take func(int) bool) error {
			for ev, err := range events {
				if err != nil || !take(ev.Object.Value.N) {
					return err
				}
			}
			return nil
		}, func() int { return len(e.Watches()) }
	},
	"Watch.Batches": func(t *testing.T, ctx context.Context) (func(int), loop, func() int) {
		e, _ := newEngine(t, nil)
		w, err := e.Watch(ctx, engine.WatchOptions{})
		require.NoError(t, err)
		batches := w.Batches()
		return putter(t, e), func(take func(int) bool) error {
			for events, err := range batches {
				if err != nil {
					return err
				}
				more := true
				for _, ev := range events {
					more = take(ev.Object.Value.N)
				}
				if !more {
					return nil
				}
			}
			return nil
		}, func() int { return len(e.Watches()) }
	},
	"Watch.Chan": func(t *testing.T, ctx context.Context) (func(int), loop, func() int) {
		e, _ := newEngine(t, nil)
		w, err := e.Watch(ctx, engine.WatchOptions{})
		require.NoError(t, err)
		events := w.Chan()
		return putter(t, e), func(take func(int) bool) error {
			for ev := range events {
				if !take(ev.Object.Value.N) {
					return nil
				}
			}
			return w.Err()
		}, func() int { return len(e.Watches()) }
	},
	"Follow": func(t *testing.T, ctx context.Context) (func(int), loop, func() int) {
		e, _ := newEngine(t, nil)
		updates := engine.Follow(ctx, e, engine.WatchOptions{})
		return putter(t, e), func(take func(int) bool) error {
			for up, err := range updates {
				if err != nil {
					return err
				}
				more := true
				if up.List != nil {
					for _, o := range up.List.Items {
						more = take(o.Value.N)
					}
				}
				for _, ev := range up.Events {
					more = take(ev.Object.Value.N)
				}
				if !more {
					return nil
				}
			}
			return nil
		}, func() int { return len(e.Watches()) }
	},
	"Topic.Messages": func(t *testing.T, ctx context.Context) (func(int), loop, func() int) {
		topic := topicOn(t, engine.TopicOptions{})
		messages := topic.Messages(ctx, engine.SubscribeOptions{})
		write := func(n int) {
			_, err := topic.Publish(ctx, n)
			require.NoError(t, err)
		}
		return write, func(take func(int) bool) error {
			for n, err := range messages {
				if err != nil || !take(n) {
					return err
				}
			}
			return nil
		}, func() int { return len(topic.Watches()) }
	},
}

// putter returns a function that writes a number under a key of its own.
func putter(t *testing.T, e *engine.Engine[pod]) func(n int) {
	return func(n int) {
		_, err := e.Put(t.Context(), pod{Name: string(rune('a' + n)), N: n})
		require.NoError(t, err)
	}
}

// The rule is the same for all: breaking loses nothing, and ranging again continues.
func TestLoop_BreakLosesNothing(t *testing.T) {
	for name, open := range loops {
		t.Run(name, func(t *testing.T) {
			write, over, _ := open(t, t.Context())
			var seen []int
			for n := range 12 {
				write(n)
				if n%3 == 2 { // sometimes several are pending when the loop is left
					require.NoError(t, over(func(got int) bool {
						seen = append(seen, got)
						return false
					}))
				}
			}
			if len(seen) < 12 {
				require.NoError(t, over(func(got int) bool {
					seen = append(seen, got)
					return len(seen) < 12
				}))
			}
			require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, seen)
		})
	}
}

// A panic of the loop's body leaves the loop as break does.
func TestLoop_PanicLosesNothing(t *testing.T) {
	for name, open := range loops {
		t.Run(name, func(t *testing.T) {
			write, over, _ := open(t, t.Context())
			write(0)
			require.PanicsWithValue(t, "oops", func() { _ = over(func(int) bool { panic("oops") }) })
			write(1)
			var seen []int
			require.NoError(t, over(func(got int) bool {
				seen = append(seen, got)
				return false
			}))
			require.Equal(t, []int{1}, seen)
		})
	}
}

// A loop ends what its iterator has opened, and nothing else.
func TestLoop_BreakEndsWhatTheIteratorHasOpened(t *testing.T) {
	for name, open := range loops {
		t.Run(name, func(t *testing.T) {
			write, over, running := open(t, t.Context())
			write(0)
			require.NoError(t, over(func(int) bool { return false }))
			left := 1
			if name == "Follow" || name == "Topic.Messages" {
				left = 0
			}
			require.Equal(t, left, running())
		})
	}
}

// The reason that ended a loop is what every later loop begins and ends with.
func TestLoop_EndIsFinal(t *testing.T) {
	for name, open := range loops {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			write, over, _ := open(t, ctx)
			write(0)
			require.NoError(t, over(func(int) bool { return false }))
			cancel(errDatabase)
			for range 2 {
				require.ErrorIs(t, over(func(int) bool { return true }), errDatabase)
			}
		})
	}
}
