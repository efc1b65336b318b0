package explore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/explore/world"
)

// neverBack attaches a cache with a defect: it assumes that a deleted key never comes back.
func neverBack() explore.Config[world.Thing] {
	cfg := explore.Things()
	cfg.Attach = func(w *world.World[world.Thing]) error {
		gone, back := map[string]bool{}, false
		_, err := w.Handle(engine.WatchOptions{InitialState: true}, func(ev engine.Event[world.Thing]) {
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
	return cfg
}

// The exploration finds the defect of a cache. The seed of the finding alone reproduces
// it, with the same hash each time.
func ExampleRun() {
	cfg := neverBack()
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

// A finding is kept as data, since a later version may draw another scenario from its seed.
func ExamplePlay() {
	cfg := neverBack()
	report, err := explore.Run(context.Background(), cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	kept, err := json.Marshal(report.Finding.Scenario)
	if err != nil {
		fmt.Println(err)
		return
	}

	var scenario script.Scenario
	if err := json.Unmarshal(kept, &scenario); err != nil {
		fmt.Println(err)
		return
	}
	finding, err := explore.Play(cfg, scenario)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("still broken:", finding.Problem)
	// Output:
	// still broken: gone for good: a key came back
}
