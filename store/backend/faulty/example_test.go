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
	cfg.FreshnessTimeout = time.Minute // a machine may be slow
	m, err := memory.New(cfg.Schema(), memory.Options{FirstRevision: 1})
	if err != nil {
		panic(err)
	}
	storage := faulty.New(m, faulty.Options{Seed: 1})
	cfg.Backend = storage
	return cfg, storage
}

// watched returns a channel that is closed once a watch of the storage runs.
func watched(storage *faulty.Backend) <-chan struct{} {
	runs := make(chan struct{})
	storage.Add(faulty.Rule{
		Ops: []faulty.Op{faulty.OpWatch}, Times: 1,
		Do: faulty.After(func(context.Context, *faulty.Call) { close(runs) }),
	})
	return runs
}

// An engine lives through storage that cannot be reached for a while.
func Example() {
	cfg, storage := lamps()
	defer storage.Close()
	runs := watched(storage)
	lists := storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 3, Do: faulty.Fail(nil)})
	e, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	ctx := context.Background()
	<-runs
	fmt.Println("lists that failed:", lists.Hits())
	fmt.Println("watches that broke:", storage.BreakWatches(nil))
	hall, _ := e.Create(ctx, lamp{Room: "hall"})
	fmt.Println("the engine catches up:", e.WaitForRevision(ctx, hall.Revision))
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

// The answer of a write is lost, so its error does not say whether it took effect.
func ExampleLoseAnswer() {
	cfg, storage := lamps()
	defer storage.Close()
	storage.Add(faulty.Rule{Ops: faulty.Writes, Times: 1, Do: faulty.LoseAnswer(cfg.Schema(), nil)})
	e, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	ctx := context.Background()
	_, err = e.Create(ctx, lamp{Room: "hall"})
	fmt.Println(err)
	fmt.Println("puts:", storage.Calls(faulty.OpPut))
	hall, err := storage.Get(ctx, "hall")
	fmt.Println("stored:", hall.Key, err)
	// Output:
	// failed by a rule of the test
	// puts: 1
	// stored: hall <nil>
}

// Storage answers after an hour, so that a read ends when its context does.
func ExampleDelay() {
	_, storage := lamps()
	defer storage.Close()
	slow := storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpGet}, Do: faulty.Delay(time.Hour)})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := storage.Get(ctx, "hall")
	fmt.Println(err, slow.Hits())
	slow.Remove()
	_, err = storage.Get(context.Background(), "hall")
	fmt.Println("without the rule:", errors.Is(err, engine.ErrNotFound))
	// Output:
	// context deadline exceeded 1
	// without the rule: true
}

// Storage says nothing until the rule is removed, and the read that hangs then goes on.
func ExampleHang() {
	_, storage := lamps()
	defer storage.Close()
	hangs := make(chan struct{})
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpGet}, Do: faulty.Before(func(context.Context, *faulty.Call) { close(hangs) })})
	silent := storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpGet}, Do: faulty.Hang()})
	answer := make(chan error)
	go func() {
		_, err := storage.Get(context.Background(), "hall")
		answer <- err
	}()
	<-hangs
	silent.Remove()
	fmt.Println("not found:", errors.Is(<-answer, engine.ErrNotFound))
	// Output: not found: true
}

// Storage has forgotten what the engine has not read yet, so the engine lists again.
func ExampleBackend_ExpireWatches() {
	cfg, storage := lamps()
	defer storage.Close()
	runs := watched(storage)
	e, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	<-runs
	lists, again := storage.Calls(faulty.OpList), watched(storage)
	fmt.Println("watches that expired:", storage.ExpireWatches())
	<-again
	fmt.Println("lists:", storage.Calls(faulty.OpList)-lists)
	// Output:
	// watches that expired: 1
	// lists: 1
}

// Storage whose revisions have gaps loses an event, which only a comparison finds.
func ExampleLoseEvent() {
	cfg, below := lamps()
	storage := faulty.New(below, faulty.Options{Sparse: true})
	defer storage.Close()
	cfg.Backend = storage
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Times: 1, Do: faulty.LoseEvent()})
	runs := watched(storage)
	e, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	ctx := context.Background()
	<-runs
	hall, _ := e.Create(ctx, lamp{Room: "hall"})
	attic, _ := e.Create(ctx, lamp{Room: "attic"})
	fmt.Println(hall.Key, attic.Key, e.WaitForRevision(ctx, attic.Revision))
	fmt.Println("the first comparison finds it:", errors.As(e.Verify(ctx), new(*engine.InconsistencyError)))
	fmt.Println("and repairs it:", e.WaitForRevision(ctx, attic.Revision), e.Verify(ctx))
	// Output:
	// hall attic <nil>
	// the first comparison finds it: true
	// and repairs it: <nil> <nil>
}

// Storage delivers a batch with an event twice; the engine's watch gets it once.
func ExampleRepeatEvent() {
	cfg, storage := lamps()
	defer storage.Close()
	repeated := storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Times: 1, Do: faulty.RepeatEvent()})
	e, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	ctx := context.Background()
	w, err := e.Watch(ctx, engine.WatchOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, room := range []string{"hall", "attic"} {
		_, _ = e.Create(ctx, lamp{Room: room})
		events, err := w.Next(ctx)
		fmt.Println(len(events), events[0].Object.Key, err)
	}
	fmt.Println("events that were repeated:", repeated.Hits())
	// Output:
	// 1 hall <nil>
	// 1 attic <nil>
	// events that were repeated: 1
}

// Storage delivers an event twice; the engine's watches get it once.
func ExampleBackend_RepeatLast() {
	cfg, storage := lamps()
	defer storage.Close()
	e, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	ctx := context.Background()
	w, err := e.Watch(ctx, engine.WatchOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, room := range []string{"hall", "attic"} {
		_, _ = e.Create(ctx, lamp{Room: room})
		events, err := w.Next(ctx)
		fmt.Println(len(events), events[0].Object.Key, err)
		storage.RepeatLast()
	}
	// Output:
	// 1 hall <nil>
	// 1 attic <nil>
}

// The first watch cannot continue from the list, so the engine lists again.
func ExampleExpire() {
	cfg, storage := lamps()
	defer storage.Close()
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Times: 1, Do: faulty.Expire()})
	runs := watched(storage)
	e, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	ctx := context.Background()
	hall, _ := e.Create(ctx, lamp{Room: "hall"})
	fmt.Println("the engine catches up:", e.WaitForRevision(ctx, hall.Revision))
	<-runs
	fmt.Println("watches:", storage.Calls(faulty.OpWatch))
	// Output:
	// the engine catches up: <nil>
	// watches: 2
}
