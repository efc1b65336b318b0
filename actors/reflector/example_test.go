package reflector_test

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
)

// printer is a sink that prints what it is told.
type printer struct{}

func (printer) Offer(u reflector.Update) actors.Verdict {
	switch u.Kind {
	case reflector.Replace:
		fmt.Printf("%s at %d: %d objects\n", u.Reason, u.Revision, len(u.Objects))
	case reflector.Changes:
		fmt.Println(u.Events)
	case reflector.Progress:
		fmt.Println("nothing else up to", u.Revision)
	case reflector.Unavailable:
		fmt.Println("unavailable:", u.Err)
	}
	return actors.Accepted
}

func ExampleSpawn() {
	exec, clock := actors.NewSeeded(1), clock.NewVirtual(time.Unix(0, 0))
	system, err := actors.NewSystem(actors.SystemConfig{Executor: exec, Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	storage := newSource() // any backend.ListerWatcher
	storage.put("pods/a", "v1")

	ref, err := reflector.Spawn(system, reflector.Config{
		Source:  storage,
		Sink:    printer{},
		Backoff: reflector.Backoff{Jitter: reflector.NoJitter}, // or set Rand
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	exec.Run()

	storage.put("pods/b", "v1")
	storage.remove("pods/a")
	exec.Run()

	storage.disturb(context.DeadlineExceeded) // the connection breaks
	storage.put("pods/c", "v1")               // meanwhile
	exec.Run()
	clock.Advance(time.Second) // it comes back, without a list
	exec.Run()

	fmt.Println("lists:", ref.Stats().Lists)
	ref.Stop()
	fmt.Println(system.Close(context.Background()))
	// Output:
	// Started at 1: 1 objects
	// [ADDED pods/b@2 DELETED pods/a@3]
	// unavailable: context deadline exceeded
	// nothing else up to 3
	// [ADDED pods/c@4]
	// lists: 1
	// <nil>
}

// A sink that was full says when it has room.
func ExampleRef_Room() {
	exec := actors.NewSeeded(1)
	system, err := actors.NewSystem(actors.SystemConfig{Executor: exec})
	if err != nil {
		fmt.Println(err)
		return
	}
	storage, sink := newSource(), &mirror{}
	sink.answer(actors.Full)
	ref, err := reflector.Spawn(system, reflector.Config{
		Source: storage, Sink: sink, Backoff: reflector.Backoff{Jitter: reflector.NoJitter},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	exec.Run()
	fmt.Println(sink.told(), ref.Stats().Full)

	sink.answer(actors.Accepted)
	ref.Room()
	exec.Run()
	fmt.Println(sink.told(), ref.Stats().Full)
	fmt.Println(system.Close(context.Background()))
	// Output:
	// [] true
	// [Replace Started@0] false
	// <nil>
}

func ExamplePermanent() {
	fmt.Println(reflector.Permanent(fmt.Errorf("list: %w", store.ErrClosed)))
	fmt.Println(reflector.Permanent(context.DeadlineExceeded))
	// Output:
	// true
	// false
}
