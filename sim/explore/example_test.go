package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore"
)

// A cache that believes that keys never come back, and is found out. The seed of
// the finding alone shows it again, with the same hash each time.
func ExampleRun() {
	cfg := explore.Things()
	cfg.Attach = func(w *explore.World[explore.Thing]) error {
		gone, back := map[string]bool{}, false
		_, err := w.Handle(engine.WatchOptions{InitialState: true}, func(ev engine.Event[explore.Thing]) {
			switch ev.Type {
			case engine.Deleted:
				gone[ev.Key()] = true
			case engine.Added:
				back = back || gone[ev.Key()]
			}
		})
		w.Always("gone for good", func() error {
			if back {
				return errors.New("a key came back")
			}
			return nil
		})
		return err
	}
	first, err := explore.Run(context.Background(), cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("broken:", first.Finding.Invariant)

	cfg.From, cfg.Seeds = first.Finding.Seed, 1
	again, _ := explore.Run(context.Background(), cfg)
	once, _ := explore.Run(context.Background(), cfg)
	fmt.Println("again:", again.Finding.Problem == first.Finding.Problem, again.Hash == once.Hash)
	// Output:
	// broken: gone for good
	// again: true true
}
