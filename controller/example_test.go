package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/queue"
)

// Pod is what the controller looks after.
type Pod struct{ Namespace, Name, Node, Phase string }

// podConfig describes pods to an engine.
func podConfig() engine.Config[Pod] {
	return engine.Config[Pod]{
		Key:    func(p Pod) string { return p.Namespace + "/" + p.Name },
		Labels: func(p Pod) labels.Set { return labels.Set{"phase": p.Phase} },
	}
}

// scheduler returns a controller, to be copied: it gives every pod without a node one.
// choose finds a node for a pod.
func scheduler(pods *engine.Engine[Pod], choose func(Pod) (string, error)) (*controller.Controller[Pod], error) {
	return controller.New(controller.Config[Pod]{
		Source: pods.Source(), Host: pods.Host(), Name: "scheduler", Workers: 2,
		OnError: func(err error) { fmt.Println(err) },
		Limiter: queue.NewExponentialRateLimiter[string](time.Millisecond, time.Second),
		// It goes by the state, not by what happened.
		Reconcile: func(ctx context.Context, key string, pod *engine.Object[Pod]) (controller.Result, error) {
			if pod == nil || pod.Value.Node != "" {
				return controller.Result{}, nil // it is gone, or well
			}
			node, err := choose(pod.Value)
			if err != nil {
				return controller.Result{}, err
			}
			bound := pod.Value
			bound.Node, bound.Phase = node, "Scheduled"
			_, err = pods.Update(ctx, key, func(Pod) (Pod, error) { return bound, nil },
				engine.UpdateOptions{Preconditions: engine.Preconditions{Revision: pod.Revision}})
			if errors.Is(err, engine.ErrPrecondition) || errors.Is(err, engine.ErrNotFound) {
				err = nil // it has changed, so it will be looked at again
			}
			return controller.Result{}, err
		},
	})
}

// The README quotes this line by line.
func Example_readme() {
	ctx := context.Background()
	pods, err := engine.New(podConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	bound := make(chan string)
	bind := func(ctx context.Context, key string, pod *engine.Object[Pod]) error {
		p := pod.Value
		p.Node = "n7"
		_, err := pods.Replace(ctx, p, pod.Revision)
		if err == nil {
			bound <- key
		}
		return err
	}
	scheduler, err := controller.New(controller.Config[Pod]{
		Source: pods.Source(), Host: pods.Host(), Name: "scheduler", Workers: 2,
		Reconcile: func(ctx context.Context, key string, pod *engine.Object[Pod]) (controller.Result, error) {
			if pod == nil || pod.Value.Node != "" {
				return controller.Result{}, nil // it is gone, or well
			}
			return controller.Result{}, bind(ctx, key, pod) // an error is tried again
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer scheduler.Close()
	if _, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web"}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-bound, "has a node")
	// Output: default/web has a node
}

func ExampleNew() {
	ctx := context.Background()
	pods, err := engine.New(podConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	tries := 0
	c, err := scheduler(pods, func(p Pod) (string, error) {
		if tries++; tries == 1 {
			return "", fmt.Errorf("no node for %s", p.Name)
		}
		return "n7", nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	scheduled, err := pods.Watch(ctx, engine.WatchOptions{Labels: "phase=Scheduled"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web"}); err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range scheduled.Events() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(ev.Object.Value.Name, "is on", ev.Object.Value.Node)
		break
	}
	// Output:
	// controller scheduler: "default/web" failed, attempt 1, again in 1ms: no node for web
	// web is on n7
}

// counts are metrics that count the keys of a controller, and its calls that failed.
type counts struct {
	controller.NoMetrics
	queued, failed atomic.Int64
}

func (c *counts) Queued(string) { c.queued.Add(1) }

func (c *counts) Reconciled(_ string, call controller.Call) {
	if errors.Is(call.Err, controller.ErrReconcile) {
		c.failed.Add(1)
	}
}

// Measurements for a system other than Prometheus.
func ExampleMetrics() {
	ctx := context.Background()
	pods, err := engine.New(podConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	metrics := &counts{}
	c, err := controller.New(controller.Config[Pod]{
		Source: pods.Source(), Host: pods.Host(), Name: "scheduler", MaxAttempts: 1, Metrics: metrics,
		Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
			return controller.Result{}, errors.New("no node has space")
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	web, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = c.Settle(ctx, web.Revision)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(metrics.queued.Load(), "queued,", metrics.failed.Load(), "failed")
	// Output: 1 queued, 1 failed
}

// A key whose object has not changed is reconciled because something else has.
func ExampleController_Enqueue() {
	pods, err := engine.New(podConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	reconciled := make(chan string)
	c, err := controller.New(controller.Config[Pod]{
		Source: pods.Source(), Host: pods.Host(), Name: "volumes",
		Reconcile: func(ctx context.Context, key string, pod *engine.Object[Pod]) (controller.Result, error) {
			select {
			case reconciled <- fmt.Sprintln(key, "exists:", pod != nil):
			case <-ctx.Done(): // the controller is closed
			}
			return controller.Result{}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_ = c.Enqueue("default/web")
	fmt.Print(<-reconciled)
	_ = c.EnqueueAfter("default/web", time.Millisecond) // or later
	fmt.Print(<-reconciled)
	// Output:
	// default/web exists: false
	// default/web exists: false
}

// In a test nothing runs but in Settle, and time stands still.
func ExampleController_Settle() {
	ctx := context.Background()
	clock := engine.NewVirtualClock(time.Unix(0, 0))
	host, err := engine.NewHost(engine.HostConfig{Clock: clock, Executor: engine.NewSeededExecutor(1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer host.Close()
	cfg := podConfig()
	cfg.Host = host
	pods, err := engine.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()
	full := true // all nodes are
	c, err := scheduler(pods, func(p Pod) (string, error) {
		if full {
			return "", errors.New("no room for " + p.Name)
		}
		return "n7", nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	web, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Settle(ctx, web.Revision), c.Stats().Queue.Delayed, "delayed")
	full = false
	clock.Advance(time.Millisecond)
	fmt.Println(c.Settle(ctx, 0), c.Informer().Get("default/web").Value.Node)
	// Output:
	// controller scheduler: "default/web" failed, attempt 1, again in 1ms: no room for web
	// <nil> 1 delayed
	// <nil> n7
}

// A program that must not go on without its controller waits for the end of it.
func ExampleController_Done() {
	pods, err := engine.New(podConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := controller.New(controller.Config[Pod]{
		Source: pods.Source(),
		Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
			return controller.Result{}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_ = pods.Close() // the source ends for good
	<-c.Done()
	fmt.Println(errors.Is(c.Err(), engine.ErrEngineClosed))
	// Output: true
}
