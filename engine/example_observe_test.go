package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/watchmill/watchmill/engine"
)

// simulated returns the configuration of an engine of pods that runs only while a call
// waits, by a clock that the example advances.
func simulated(logger *slog.Logger) (engine.Config[Pod], *engine.VirtualClock, func()) {
	clock := engine.NewVirtualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	host, err := engine.NewHost(engine.HostConfig{Clock: clock, Executor: engine.NewSeededExecutor(1), Seed: 1, Logger: logger})
	must(err)
	cfg := podConfig()
	cfg.Host, cfg.Name, cfg.FirstRevision = host, "pods", 1
	return cfg, clock, func() { must(host.Close()) }
}

// A watch without a name is named by the line that started it. The name is in each error.
func ExampleWatch_Name() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	billing, err := pods.Watch(ctx, engine.WatchOptions{Name: "billing"})
	must(err)
	unnamed, err := pods.Watch(ctx, engine.WatchOptions{})
	must(err)
	fmt.Println(billing.Name(), strings.Contains(unnamed.Name(), "example_observe_test.go:"))
	billing.Stop()
	fmt.Println(billing.Err())
	// Output:
	// billing true
	// billing: watch stopped
}

// The watch that is furthest behind comes first.
func ExampleEngine_Watches() {
	ctx := context.Background()
	cfg, clock, closeHost := simulated(nil)
	defer closeHost()
	pods, err := engine.New(cfg)
	must(err)
	defer pods.Close()

	audit, err := pods.Watch(ctx, engine.WatchOptions{Name: "audit"})
	must(err)
	_, err = pods.Watch(ctx, engine.WatchOptions{Name: "billing", Prefix: "shop", Policy: engine.Park, Buffer: 1}) // which is never read
	must(err)
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		_, err := pods.Create(ctx, Pod{Namespace: "shop", Name: name})
		must(err)
	}
	_, err = audit.Next(ctx)
	must(err)
	clock.Advance(3 * time.Second)
	must(pods.WaitForRevision(ctx, 4))
	for _, w := range pods.Watches() {
		fmt.Printf("%s selects %s by %v: lag %d, behind %v, age %v, delivered %d, stalled %v\n",
			w.Name, w.Selector, w.Policy, w.Lag, w.Behind, w.Age, w.Delivered, !w.StalledSince.IsZero())
	}
	// Output:
	// billing selects prefix "shop" by park: lag 3, behind 3s, age 3s, delivered 0, stalled true
	// audit selects everything by park: lag 0, behind 0s, age 3s, delivered 3, stalled false
}

// A consumer that is stuck is as far behind as its oldest event is old, however few events
// wait.
func ExampleWatch_Behind() {
	ctx := context.Background()
	cfg, clock, closeHost := simulated(nil)
	defer closeHost()
	pods, err := engine.New(cfg)
	must(err)
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{})
	must(err)
	_, err = pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	must(err)
	must(pods.WaitForRevision(ctx, 2))
	clock.Advance(3 * time.Second)
	fmt.Println(w.Lag(), "event,", w.Behind())
	_, err = w.Next(ctx)
	must(err)
	fmt.Println(w.Lag(), "events,", w.Behind())
	// Output:
	// 1 event, 3s
	// 0 events, 0s
}

// Subscriptions have names, too.
func ExampleTopic_Watches() {
	ctx := context.Background()
	orders := engine.NewTopicWith[Order](engine.TopicOptions{})
	defer orders.Close()
	_, err := orders.SubscribeWith(ctx, engine.SubscribeOptions{Name: "billing"}, func(Order) {})
	must(err)
	for _, s := range orders.Watches() {
		fmt.Println(s.Name, s.Lag)
	}
	// Output: billing 0
}

// The log has a line for each handler that panics, with its stack, and for each watch that
// ends, with its name and the reason.
func ExampleHostConfig_logger() {
	ctx := context.Background()
	brief := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "stack" || a.Key == "actor" || a.Key == "id" {
			return slog.Attr{}
		}
		return a
	}
	cfg, _, closeHost := simulated(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: brief})))
	defer closeHost()
	pods, err := engine.New(cfg)
	must(err)
	defer pods.Close()
	billing, err := pods.Handle(ctx, engine.WatchOptions{Name: "billing"}, func(engine.Event[Pod]) { panic("oops") })
	must(err)
	_, err = pods.Create(ctx, Pod{Namespace: "default", Name: "web"})
	must(err)
	must(billing.Wait(ctx))
	// Output:
	// level=ERROR msg="actor failed" reason="billing: watch handler panicked on \"default/web\" at revision 2: oops" directive=Stop
	// level=ERROR msg="watch ended" engine=pods watch=billing why="billing: watch handler panicked on \"default/web\" at revision 2: oops" delivered=1
}

// lines is a log that a test can read.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default: // there are more than the example looks at
	}
	return len(p), nil
}

// An engine that was never closed, and that nothing refers to any more, is logged once.
func ExampleHostConfig_leak() {
	logged := make(lines, 100)
	host, err := engine.NewHost(engine.HostConfig{Logger: slog.New(slog.NewTextHandler(logged, nil))})
	must(err)
	defer host.Close()
	func() {
		cfg := podConfig()
		cfg.Host, cfg.Name = host, "forgotten"
		_, err := engine.New(cfg)
		must(err)
	}()
	for {
		runtime.GC() // as happens by itself, sooner or later
		select {
		case line := <-logged:
			if strings.Contains(line, "never closed") {
				fmt.Println(strings.Contains(line, "engine=forgotten"))
				return
			}
		default:
		}
	}
	// Output: true
}

// reasons counts why watches end.
type reasons struct {
	engine.NoMetrics
	mu    sync.Mutex
	count map[string]int
}

func (r *reasons) Ended(_ string, end engine.WatchEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[end.Reason()]++
}

// Metrics of any library have methods for what they measure.
func ExampleMetrics() {
	ctx := context.Background()
	metrics := &reasons{count: map[string]int{}}
	cfg := podConfig()
	cfg.Metrics = metrics
	pods, err := engine.New(cfg)
	must(err)
	w, err := pods.Handle(ctx, engine.WatchOptions{}, func(engine.Event[Pod]) { panic("oops") })
	must(err)
	_, err = pods.Create(ctx, Pod{Namespace: "default", Name: "web"})
	must(err)
	<-w.Done()
	_, err = pods.Watch(ctx, engine.WatchOptions{})
	must(err)
	must(pods.Close())
	fmt.Println(metrics.count)
	// Output: map[closed:1 panicked:1]
}

// A create that must not overwrite, and a delete that must not delete what it has not seen.
func ExamplePreconditions() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	claim := func(node string) error {
		_, err := pods.Update(ctx, "default/leader", func(Pod) (Pod, error) {
			return Pod{Namespace: "default", Name: "leader", Node: node}, nil
		}, engine.UpdateOptions{Preconditions: engine.Preconditions{Absent: true}})
		return err
	}
	fmt.Println(claim("n1"), errors.Is(claim("n2"), engine.ErrConflict))

	seen, err := pods.Get(ctx, "default/leader", engine.GetOptions{})
	must(err)
	_, err = pods.Put(ctx, Pod{Namespace: "default", Name: "leader", Node: "n3"})
	must(err)
	_, err = pods.Delete(ctx, seen.Key, engine.DeleteOptions{Preconditions: engine.Preconditions{Revision: seen.Revision}})
	fmt.Println(errors.Is(err, engine.ErrConflict))
	// Output:
	// <nil> true
	// true
}

// Leaving a loop leaves the watch where it is, in each kind of loop: the next one goes on
// with the next event.
func ExampleWatch_Events() {
	ctx := context.Background()
	pods := newPods()
	defer pods.Close()
	w, err := pods.Watch(ctx, engine.WatchOptions{})
	must(err)
	defer w.Stop()
	for _, name := range []string{"a", "b", "c"} {
		_, err := pods.Create(ctx, Pod{Namespace: "default", Name: name})
		must(err)
	}
	must(pods.WaitForRevision(ctx, 4))
	for ev := range w.Events() {
		fmt.Println("Events:", ev.Key())
		break
	}
	for events := range w.Batches() {
		fmt.Println("Batches:", events[0].Key())
		break
	}
	fmt.Println(w.Err())
	// Output:
	// Events: default/a
	// Batches: default/b
	// <nil>
}

// A handler's context ends when the engine is closed, which waits for the handler.
func ExampleErrorPolicy() {
	ctx := context.Background()
	pods := newPods()
	indexing := make(chan struct{})
	w, err := pods.Process(ctx, engine.WatchOptions{Name: "indexer"}, engine.ErrorPolicy{Attempts: 3, Backoff: time.Millisecond, Skip: true},
		func(ctx context.Context, ev engine.Event[Pod]) error {
			close(indexing)
			<-ctx.Done() // in the middle of a slow call
			fmt.Println(ev.Key(), "is not indexed:", ctx.Err())
			return ctx.Err()
		})
	must(err)
	_, err = pods.Create(ctx, Pod{Namespace: "default", Name: "web-1"})
	must(err)
	<-indexing
	must(pods.Close())
	fmt.Println(w.Err())
	// Output:
	// default/web-1 is not indexed: context canceled
	// indexer: engine closed
}

// The event of a deletion has what the last write carried, since a deletion stores no value.
// So a writer that wants to pass on the trace of a deletion first writes that the object is
// to go, and then deletes what it has written.
func ExampleEngine_Delete_carry() {
	type spanKey struct{}
	type Order struct {
		ID, Trace string
		Canceled  bool
	}
	orders, err := engine.New(engine.Config[Order]{
		Key:   func(o Order) string { return o.ID },
		Carry: func(ctx context.Context, o Order) Order { o.Trace, _ = ctx.Value(spanKey{}).(string); return o },
	})
	must(err)
	defer orders.Close()
	ctx := context.WithValue(context.Background(), spanKey{}, "create")
	_, err = orders.Create(ctx, Order{ID: "7"})
	must(err)
	w, err := orders.Watch(ctx, engine.WatchOptions{})
	must(err)

	ctx = context.WithValue(context.Background(), spanKey{}, "cancel")
	marked, err := orders.Update(ctx, "7", func(o Order) (Order, error) { o.Canceled = true; return o, nil }, engine.UpdateOptions{})
	must(err)
	_, err = orders.Delete(ctx, "7", engine.DeleteOptions{Preconditions: engine.Preconditions{Revision: marked.Revision}})
	must(err)
	for ev := range w.Events() {
		if ev.Type == engine.Deleted {
			fmt.Println(ev.Type, ev.Key(), "in", ev.Object.Value.Trace)
			break
		}
	}
	// Output: DELETED 7 in cancel
}
