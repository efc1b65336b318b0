package kube

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
)

// outgoing is the size of the channel to the reflector: that of etcd's watcher in
// the API server.
const outgoing = 100

// follower is the watch of a memory: a goroutine that forwards its events.
type follower struct {
	results chan watch.Event
	stop    func()
	stopped sync.WaitGroup
}

func newFollower(ctx context.Context, m *memory, from uint64) *follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{results: make(chan watch.Event, outgoing), stop: cancel}
	f.stopped.Go(func() { f.run(ctx, m, from) })
	return f
}

func (f *follower) run(ctx context.Context, m *memory, from uint64) {
	defer close(f.results)
	for {
		for _, ev := range m.take() {
			if revisionOf(ev) <= from && ev.Type != watch.Bookmark {
				continue
			}
			select {
			case f.results <- ev:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-m.wake:
		case <-ctx.Done():
			return
		}
	}
}

// revisionOf returns the revision of an event's object, which the storage set.
func revisionOf(ev watch.Event) uint64 {
	rev, _ := strconv.ParseUint(ev.Object.(*example.Pod).ResourceVersion, 10, 64)
	return rev
}

func (f *follower) ResultChan() <-chan watch.Event { return f.results }

func (f *follower) Stop() {
	f.stop()
	f.stopped.Wait()
}
