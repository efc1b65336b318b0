package informer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/queue"
)

// Pod is what the controller looks after.
type Pod struct{ Namespace, Name, Node, Phase string }

// Scheduler is a controller, to be copied: it gives every pod without a node
// one. An informer says which pods may need something, a work queue has each of
// them looked at by one worker at a time, and reconcile brings one of them from
// what it is to what it should be, however it came to be so.
//
//	engine ──▶ informer ──keys──▶ work queue ──▶ workers: reconcile ──▶ engine
//	                                  ▲                │
//	                                  └── later again ─┘ on an error
type Scheduler struct {
	engine  *engine.Engine[Pod]
	pods    *informer.SharedInformer[Pod]
	handler *informer.Registration
	queue   *queue.WorkQueue[string]
	// choose finds a node for a pod.
	choose func(Pod) (string, error)
}

// NewScheduler returns a scheduler of the pods in e. Close it when done.
func NewScheduler(e *engine.Engine[Pod], choose func(Pod) (string, error)) (*Scheduler, error) {
	c := &Scheduler{engine: e, choose: choose}
	var err error
	if c.queue, err = queue.NewWorkQueue(queue.WorkQueueConfig[string]{
		Clock: e.Host().Clock(), Limiter: queue.NewDefaultRateLimiter[string](),
	}); err != nil {
		return nil, err
	}
	if c.pods, err = informer.New(informer.Config[Pod]{Source: e.Source(), Host: e.Host()}); err != nil {
		return nil, err
	}
	// All that a handler should do is to say what has to be looked at.
	c.handler, err = c.pods.Subscribe(func(n informer.Notification[Pod]) { c.queue.Add(n.Key()) }, informer.HandlerOptions{})
	if err != nil {
		return nil, errors.Join(err, c.pods.Close())
	}
	return c, nil
}

// Run works until ctx is done.
func (c *Scheduler) Run(ctx context.Context, workers int) error {
	if err := informer.WaitFor(ctx, c.pods, c.handler); err != nil {
		return err
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.work(ctx) {
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// work does one piece of work, and reports whether to go on.
func (c *Scheduler) work(ctx context.Context) bool {
	key, err := c.queue.Get(ctx)
	if err != nil {
		return false
	}
	defer c.queue.Done(key)
	if err := c.reconcile(ctx, key); err != nil {
		fmt.Println("again later:", err)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

// reconcile sees to one pod. It goes by the state, not by what happened.
func (c *Scheduler) reconcile(ctx context.Context, key string) error {
	pod := c.pods.Get(key)
	if pod == nil || pod.Value.Node != "" {
		return nil // it is gone, or well
	}
	node, err := c.choose(pod.Value)
	if err != nil {
		return err
	}
	_, err = c.engine.Update(ctx, key, func(p Pod) (Pod, error) {
		p.Node, p.Phase = node, "Scheduled"
		return p, nil
	}, engine.UpdateOptions{Preconditions: engine.Preconditions{Revision: pod.Revision}})
	if errors.Is(err, engine.ErrPrecondition) || errors.Is(err, engine.ErrNotFound) {
		return nil // it has changed, so it will be looked at again
	}
	return err
}

// Close ends the informer and drops what is queued.
func (c *Scheduler) Close() error {
	c.queue.ShutDown()
	return c.pods.Close()
}

func Example_controller() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pods, err := engine.New(engine.Config[Pod]{
		Key:    func(p Pod) string { return p.Namespace + "/" + p.Name },
		Labels: func(p Pod) labels.Set { return labels.Set{"phase": p.Phase} },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pods.Close()

	tries := 0
	scheduler, err := NewScheduler(pods, func(p Pod) (string, error) {
		if tries++; tries == 1 {
			return "", fmt.Errorf("no node for %s", p.Name)
		}
		return "n7", nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer scheduler.Close()
	ended := make(chan error)
	go func() { ended <- scheduler.Run(ctx, 2) }()

	watch, err := pods.Watch(ctx, engine.WatchOptions{Name: "scheduled", Labels: "phase=Scheduled"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web"}); err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range watch.Events() {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(ev.Object.Value.Name, "is on", ev.Object.Value.Node)
		cancel()
	}
	fmt.Println(<-ended)
	// Output:
	// again later: no node for web
	// web is on n7
	// scheduled: watch stopped: context canceled
	// context canceled
}
