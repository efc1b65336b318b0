package actors_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/watchmill/watchmill/actors"
)

// quiet starts a deterministic system for an example.
func quiet(cfg actors.SystemConfig) (*actors.System, *actors.Seeded) {
	seeded := actors.NewSeeded(1)
	cfg.Executor = seeded
	sys, err := actors.NewSystem(cfg)
	if err != nil {
		panic(err)
	}
	return sys, seeded
}

// adder adds up its messages and prints the sum once per batch.
type adder struct{ sum int }

func (a *adder) Receive(_ *actors.Context, n int) { a.sum += n }

func (a *adder) Flush(*actors.Context) { fmt.Println("sum:", a.sum) }

func newAdder() actors.Behavior[int] { return new(adder) }

func Example() {
	sys, err := actors.NewSystem(actors.SystemConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	greeted := make(chan string)
	greeter := actors.Spawn(sys, "greeter", func() actors.Behavior[string] { return greeter{greeted} }, actors.Options{})
	greeter.Offer("world")
	fmt.Println(<-greeted)
	fmt.Println(sys.Close(context.Background()), sys.Actors())
	// Output:
	// hello, world
	// <nil> 0
}

type greeter struct{ to chan<- string }

func (g greeter) Receive(_ *actors.Context, name string) { g.to <- "hello, " + name }

func ExampleSpawn() {
	sys, seeded := quiet(actors.SystemConfig{})
	ref := actors.Spawn(sys, "adder", newAdder, actors.Options{
		Capacity: 2,
		OnRoom:   func() { fmt.Println("offer again") },
	})
	fmt.Println(ref.Offer(1), ref.Offer(2), ref.Offer(3))
	seeded.Run()
	fmt.Println(sys.Close(context.Background()), ref.Offer(4))
	// Output:
	// Accepted Accepted Full
	// offer again
	// sum: 3
	// <nil> Gone
}

// doubling is a number to double, and a channel with room for the answer.
type doubling struct {
	n     int
	reply chan<- int
}

type doubler struct{}

func (doubler) Receive(_ *actors.Context, m doubling) { m.reply <- 2 * m.n }

// The answer may be there when Ask returns, and is otherwise waited for.
func ExampleRef_Ask() {
	sys, err := actors.NewSystem(actors.SystemConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ref := actors.Spawn(sys, "doubler", func() actors.Behavior[doubling] { return doubler{} }, actors.Options{})
	reply := make(chan int, 1)
	if ref.Ask(doubling{21, reply}) {
		fmt.Println(<-reply)
	}
	fmt.Println(sys.Close(context.Background()), ref.Ask(doubling{1, reply}))
	// Output:
	// 42
	// <nil> false
}

// A program that does something else until the system has stopped, whatever closes it.
func ExampleSystem_Stopped() {
	sys, err := actors.NewSystem(actors.SystemConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = sys.Close(context.Background()) }()
	<-sys.Stopped()
	late := actors.Spawn(sys, "late", newAdder, actors.Options{})
	fmt.Println(late.Offer(1))
	// Output: Gone
}

// pipeline restarts its parser when that fails.
type pipeline struct{ parser *actors.Ref[string] }

func (p *pipeline) Started(ctx *actors.Context) {
	p.parser = actors.Spawn(ctx, "parser", func() actors.Behavior[string] { return parser{} }, actors.Options{})
}

func (p *pipeline) Receive(_ *actors.Context, line string) { p.parser.Tell(line) }

func (p *pipeline) ChildFailed(_ *actors.Context, _ actors.ID, reason any) actors.Directive {
	fmt.Println("parser failed:", reason)
	return actors.Restart
}

type parser struct{}

func (parser) Started(ctx *actors.Context) { fmt.Println(ctx.Name(), "started") }

func (parser) Receive(_ *actors.Context, line string) {
	if line == "" {
		panic("empty line")
	}
	fmt.Println("parsed", line)
}

func ExampleSupervisor() {
	sys, seeded := quiet(actors.SystemConfig{Logger: silent})
	ref := actors.Spawn(sys, "pipeline", func() actors.Behavior[string] { return new(pipeline) }, actors.Options{})
	for _, line := range []string{"a", "", "b"} {
		ref.Tell(line)
	}
	seeded.Run()
	fmt.Println(sys.Close(context.Background()))
	// Output:
	// pipeline/parser started
	// parsed a
	// parser failed: empty line
	// pipeline/parser started
	// parsed b
	// <nil>
}

// reading is a wake actor: it reads a log at its own cursor.
type reading struct {
	actors.WakeBox
	log    *[]string
	cursor int
}

func (r *reading) Woken(*actors.Context) (again bool) {
	fmt.Println("read", (*r.log)[r.cursor:])
	r.cursor = len(*r.log)
	return false
}

func ExampleSpawnWake() {
	sys, seeded := quiet(actors.SystemConfig{})
	var log []string
	r := &reading{log: &log}
	hub := actors.Spawn(sys, "hub", newRunner, actors.Options{})
	hub.Tell(func(ctx *actors.Context) {
		if err := actors.SpawnWake(ctx, r, &r.WakeBox, nil); err != nil {
			fmt.Println(err)
		}
	})
	seeded.Run()
	for _, line := range []string{"a", "b", "c"} {
		log = append(log, line)
		r.Wake() // three wakes, one turn
	}
	seeded.Run()
	log = append(log, "d")
	actors.WakeAll(sys.Pool(), []*actors.WakeBox{&r.WakeBox})
	seeded.Run()
	fmt.Println(sys.Close(context.Background()))
	// Output:
	// read [a b c]
	// read [d]
	// <nil>
}

func ExamplePool() {
	pool := actors.NewPool(1)
	for i := range 3 {
		pool.Submit(newTask(func() { fmt.Println("turn", i) }))
	}
	pool.Close()
	// Output:
	// turn 0
	// turn 1
	// turn 2
}

func ExampleBlocking() {
	blocking := actors.NewBlocking()
	answer := make(chan string)
	blocking.Submit(newTask(func() { answer <- "slow" }))
	fmt.Println(<-answer, blocking.Close(context.Background()))
	// Output: slow <nil>
}

func ExampleSeeded() {
	order := func(seed uint64) (order []int) {
		seeded := actors.NewSeeded(seed)
		for i := range 5 {
			seeded.Submit(newTask(func() { order = append(order, i) }))
		}
		seeded.Run()
		return order
	}
	first := order(1)
	fmt.Println(slices.Equal(first, order(1)), slices.Equal(first, order(2)))
	// Output: true false
}
