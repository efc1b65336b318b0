package informer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/watchmill/watchmill/engine/informer"
)

// An informer and each of its handlers sync apart: all that a program needs it can wait for
// at once. What does not sync in time is named.
func ExampleWaitFor() {
	ctx := context.Background()
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	stuck := make(chan struct{})
	quick, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{}, informer.HandlerOptions{Name: "quick"})
	must(err)
	slow, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{
		AddFunc: func(*informer.Object[Pod], bool) { <-stuck },
	}, informer.HandlerOptions{Name: "slow"})
	must(err)
	must(informer.WaitFor(ctx, pods, quick))

	over, cancel := context.WithCancel(ctx)
	cancel()
	err = informer.WaitFor(over, pods, quick, slow)
	var late *informer.NotSyncedError
	if errors.As(err, &late) {
		fmt.Println("not synced:", late.Laggards[0].Name)
	}
	close(stuck)
	fmt.Println(informer.WaitFor(ctx, pods, quick, slow))
	// Output:
	// not synced: slow
	// <nil>
}

// A handler that is added later gets the present state first, and then the changes.
func ExampleSharedInformer_AddEventHandler() {
	ctx := context.Background()
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	h, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{
		AddFunc: func(o *informer.Object[Pod], initial bool) { fmt.Println("added", o.Key, "initial:", initial) },
	}, informer.HandlerOptions{})
	must(err)
	must(h.WaitSynced(ctx))
	dns, err := e.Create(ctx, Pod{"kube-system", "dns", "n8", "Running"})
	must(err)
	must(pods.WaitForRevision(ctx, dns.Revision))
	must(h.Remove(ctx, informer.Drain))
	// Output:
	// added default/db initial: true
	// added default/web initial: true
	// added kube-system/dns initial: false
}

// Drain delivers what was committed before the removal. The handler is not called again when
// Remove has returned.
func ExampleRegistration_Remove() {
	ctx := context.Background()
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	calls := 0
	h, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{
		AddFunc: func(*informer.Object[Pod], bool) { calls++ },
	}, informer.HandlerOptions{})
	must(err)
	fmt.Println(h.Remove(ctx, informer.Drain), calls, errors.Is(h.Err(), informer.ErrRemoved))
	// Output: <nil> 2 true
}

// A handler ends itself by Stop, which does not wait.
func ExampleRegistration_Stop() {
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	added := make(chan *informer.Registration, 1)
	h, err := pods.Subscribe(func(n informer.Notification[Pod]) {
		fmt.Println(n.Key(), "is enough")
		(<-added).Stop(informer.Drop)
	}, informer.HandlerOptions{})
	must(err)
	added <- h
	<-h.Done()
	fmt.Println(h.HasSynced())
	// Output:
	// default/db is enough
	// false
}

// A handler that panics loses that one notification, and OnError gets the panic. With
// EndHandler the handler ends.
func ExampleRegistration_Err() {
	e, err := newPods()
	must(err)
	defer e.Close()
	ctx := context.Background()
	_, err = e.Create(ctx, Pod{"default", "db", "n7", "Running"})
	must(err)
	pods, err := informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()})
	must(err)
	defer pods.Close()
	h, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{
		AddFunc: func(*informer.Object[Pod], bool) { panic("cannot") },
	}, informer.HandlerOptions{Name: "fragile", OnPanic: informer.EndHandler})
	must(err)
	<-h.Done()
	var failed *informer.PanicError
	fmt.Println(errors.As(h.Err(), &failed), errors.Is(h.Err(), informer.ErrHandlerPanic))
	fmt.Println(failed.Handler, strings.Contains(failed.Notification, "default/db"))
	// Output:
	// true true
	// fragile true
}

// A handler that is behind gets one change for each object, from the state that it knows to
// the newest.
func ExampleHandlerOptions() {
	ctx := context.Background()
	e, pods := running()
	defer e.Close()
	defer pods.Close()
	busy, release := make(chan struct{}), make(chan struct{})
	calls, newest := 0, ""
	h, err := pods.AddEventHandler(informer.HandlerFuncs[Pod]{
		UpdateFunc: func(_, o *informer.Object[Pod]) {
			if calls++; calls == 1 {
				close(busy)
				<-release
			}
			newest = o.Value.Phase
		},
	}, informer.HandlerOptions{Policy: informer.Merge, Buffer: 10})
	must(err)
	must(h.WaitSynced(ctx))
	put := func(phase int) {
		o, err := e.Put(ctx, Pod{"default", "web", "n7", fmt.Sprint("phase ", phase)})
		must(err)
		must(pods.WaitForRevision(ctx, o.Revision))
	}
	put(0)
	<-busy
	for phase := range 100 {
		put(phase)
	}
	close(release)
	must(h.Remove(ctx, informer.Drain))
	fmt.Println(newest, "after fewer than 100 calls:", calls < 100)
	// Output: phase 99 after fewer than 100 calls: true
}
