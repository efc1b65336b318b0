package informer_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/engine/informer"
)

// TestProperty_CopyAndHandlersAreAlwaysAtAStateOfTheSource tries any sequence of everything that
// can happen, with the actors' turns in any order. After each step the copy and its indexes are a
// state that the source had, and so is what the notifications of each handler add up to.
func TestProperty_CopyAndHandlersAreAlwaysAtAStateOfTheSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		key, node := rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.SampledFrom([]string{"x", "y", "bad"})
		t.Repeat(map[string]func(*rapid.T){
			"write":    func(t *rapid.T) { w.put(key.Draw(t, "key"), node.Draw(t, "node")) },
			"remove":   func(t *rapid.T) { w.remove(key.Draw(t, "key")) },
			"recreate": func(t *rapid.T) { w.recreate(key.Draw(t, "key"), node.Draw(t, "node")) },
			"turns":    func(t *rapid.T) { w.executor.RunN(rapid.IntRange(1, 10).Draw(t, "turns")) },
			"pass":     func(t *rapid.T) { w.pass(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second) },
			"subscribe": func(t *rapid.T) {
				w.subscribe(informer.HandlerOptions{
					Policy: rapid.SampledFrom([]informer.Policy{informer.Merge, informer.Resnapshot, informer.Block}).Draw(t, "policy"),
					Buffer: rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "buffer"), // zero is the default, which is never exceeded here
					Resync: rapid.SampledFrom([]time.Duration{0, resyncEvery}).Draw(t, "resync"),
				})
			},
			"slow": func(t *rapid.T) {
				h := oneOf(t, w.running())
				for range rapid.IntRange(2, 12).Draw(t, "actions") {
					what := rapid.SampledFrom([]string{"write", "remove", "recreate", "wait"}).Draw(t, "what")
					h.during = append(h.during, w.doing(what, key.Draw(t, "key"), node.Draw(t, "node")))
				}
				w.source.Resume()
				w.change(key.Draw(t, "key"), node.Draw(t, "node"))
				w.pass(resyncEvery / 2)
			},
			"unsubscribe": func(t *rapid.T) {
				h := oneOf(t, w.handlers) // also one that was removed before
				h.stop(rapid.SampledFrom([]informer.Removal{informer.Drain, informer.Drop}).Draw(t, "how"))
			},
			"index":  func(*rapid.T) { w.addIndex() },
			"break":  func(*rapid.T) { w.source.ResetWatches(nil) },
			"expire": func(*rapid.T) { w.expire() },
			"fail": func(t *rapid.T) {
				w.source.FailList(rapid.IntRange(1, 3).Draw(t, "lists"), nil)
				w.source.FailWatch(rapid.IntRange(1, 3).Draw(t, "watches"), nil)
			},
			"stall":  func(*rapid.T) { w.source.Stall() },
			"resume": func(*rapid.T) { w.source.Resume() },
			"settle": func(*rapid.T) { w.settle() },
			"resync": func(*rapid.T) { w.resync() },
			"":       func(*rapid.T) { w.check() },
		})
		w.end(rapid.SampledFrom([]string{"close", "stop", "source", "settled"}).Draw(t, "end"))
	})
}
