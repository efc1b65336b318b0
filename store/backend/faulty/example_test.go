package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// lamp is what the examples store.
type lamp struct {
	Room string
	On   bool
}

// lamps returns the configuration of an engine over faulty storage, and that
// storage.
func lamps() (engine.Config[lamp], *faulty.Backend) {
	cfg := engine.Config[lamp]{Key: func(l lamp) string { return l.Room }}
	cfg.Backoff.Initial, cfg.Backoff.Max = time.Millisecond, time.Millisecond
	m, err := memory.New(cfg.Schema(), memory.Options{FirstRevision: 1})
	if err != nil {
		panic(err)
	}
	storage := faulty.New(m, faulty.Options{Seed: 1})
	cfg.Backend = storage
	return cfg, storage
}

// An engine lives through storage that cannot be reached for a while.
func Example() {
	cfg, storage := lamps()
	defer storage.Close()
	lists := storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 3, Do: faulty.Fail(nil)})
	e, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	ctx := context.Background()
	if err := e.WaitFor(ctx, 0); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("lists that failed:", lists.Hits())
	fmt.Println("watches that broke:", storage.BreakWatches(nil))
	hall, _ := e.Create(ctx, lamp{Room: "hall"})
	fmt.Println("the engine catches up:", e.WaitFor(ctx, hall.Revision))
	// Output:
	// lists that failed: 3
	// watches that broke: 1
	// the engine catches up: <nil>
}

// One write in five fails, and which ones depends on the seed alone.
func ExampleRule() {
	cfg, storage := lamps()
	defer storage.Close()
	storage.Add(faulty.Rule{Ops: faulty.Writes, Chance: 0.2, Do: faulty.Fail(nil)})
	e, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	for n := range 20 {
		if _, err := e.Put(context.Background(), lamp{Room: fmt.Sprint(n)}); errors.Is(err, faulty.ErrInjected) {
			fmt.Println(n, err)
		}
	}
	// Output:
	// 2 failed by a rule of the test
	// 5 failed by a rule of the test
	// 8 failed by a rule of the test
}

// A call can be changed, too: this storage is three revisions behind.
func ExampleAfter() {
	cfg, storage := lamps()
	defer storage.Close()
	storage.Add(faulty.Rule{
		Ops: []faulty.Op{faulty.OpRevision},
		Do:  faulty.After(func(_ context.Context, c *faulty.Call) { c.Revision -= min(c.Revision-1, 3) }),
	})
	e, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	var newest *engine.Object[lamp]
	for n := range 5 {
		if newest, err = e.Create(context.Background(), lamp{Room: fmt.Sprint(n)}); err != nil {
			fmt.Println(err)
		}
	}
	said, err := storage.Revision(context.Background())
	fmt.Println("newest:", newest.Revision, "storage says:", said, err)
	// Output:
	// newest: 6 storage says: 3 <nil>
}
