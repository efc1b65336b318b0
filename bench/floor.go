package bench

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

// A floor is a bare loop of the work that every implementation must do. It has no
// ordering and no subscription, and its watchers neither lag nor fail.

// silent is the watch of a floor: it never ends.
type silent struct{}

func (silent) Done() <-chan struct{}          { return nil }
func (silent) Drain(context.Context, int) int { return 0 }
func (silent) Stop()                          {}

// callees opens silent watches and returns their handlers.
func (c *crowd) callees() []func(seq int64) {
	var handlers []func(seq int64)
	// It cannot fail.
	_ = c.open(func(_ int, handle func(seq int64)) (Watch, error) {
		handlers = append(handlers, handle)
		return silent{}, nil
	})
	return handlers
}

// callFloor calls p.Watchers counting handlers over a shared slice of p.Events
// events, on one goroutine.
func callFloor(_ context.Context, p Params) (Result, error) {
	events := make([]int64, p.Events)
	for i := range events {
		events[i] = int64(i)
	}
	crowd := newCrowd(p.Watchers, 0, newWriter(p, objects(1)))
	handlers := crowd.callees()
	begin := time.Now()
	for _, handle := range handlers {
		for _, seq := range events {
			handle(seq)
		}
	}
	took := time.Since(begin)
	n, _, _ := crowd.delivered()
	return Result{rate(Deliveries, n, took), micros(Current, took)}, nil
}

// pacedFloor sends each write through a channel to one goroutine, which calls all
// handlers.
func pacedFloor(ctx context.Context, p Params) (Result, error) {
	crowd := newCrowd(p.Watchers, p.Watchers, newWriter(p, objects(1)))
	handlers := crowd.callees()
	pipe := make(chan int64, 1024)
	defer close(pipe)
	go func() {
		for seq := range pipe {
			for _, handle := range handlers {
				handle(seq)
			}
		}
	}()
	took, err := crowd.run(ctx, func(_ context.Context, o Object) error {
		pipe <- o.Seq
		return nil
	})
	if err != nil {
		return nil, err
	}
	return crowd.result(took), nil
}

// routeFloor appends each write to a log and looks its one handler up in a map.
func routeFloor(ctx context.Context, p Params) (Result, error) {
	object := objects(p.Objects)
	crowd := newShares(p, p.Objects, newWriter(p, object))
	routes := make(map[string]func(seq int64), p.Watchers)
	for i, handle := range crowd.callees() {
		routes[nodeName(i)] = handle
	}
	log := make([]*Object, 0, p.Events)
	took, err := crowd.run(ctx, func(_ context.Context, o Object) error {
		log = append(log, &o)
		routes[o.Node](o.Seq)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return append(Result{rate(Writes, int64(len(log)), took)}, crowd.latency().metrics()...), nil
}

// footprintFloor measures a position and a handler for each watcher.
func footprintFloor(context.Context, Params) (Result, error) {
	type watcher struct {
		position uint64
		handle   func(seq int64)
	}
	bytes := memory{bytes: int64(unsafe.Sizeof(watcher{position: 0, handle: nil}))}
	return bytes.per(memory{}, 1), nil
}

// subscribeFloor puts a handler into a map and takes it out.
func subscribeFloor(_ context.Context, p Params) (Result, error) {
	handlers := make(map[int]func(seq int64))
	return timed(Subscriptions, p.Events, func(i int) error {
		handlers[i] = func(int64) {}
		delete(handlers, i)
		return nil
	})
}

// copyFloor copies a pointer to each object.
func copyFloor(_ context.Context, p Params) (Result, error) {
	return timed(Reads, p.Events, copying(pointers(p.Objects)))
}

// indexFloor looks a node up and copies a pointer to each of its objects.
func indexFloor(_ context.Context, p Params) (Result, error) {
	nodes := make(map[string][]*Object)
	for i, o := range pointers(p.Objects) {
		node := nodeName(i / p.Watchers)
		nodes[node] = append(nodes[node], o)
	}
	names := make([]string, len(nodes))
	for i := range names {
		names[i] = nodeName(i)
	}
	return timed(Reads, p.Events, func(i int) error { return copying(nodes[names[i%len(names)]])(i) })
}

// getFloor looks one object up in a map.
func getFloor(_ context.Context, p Params) (Result, error) {
	all := make(map[string]*Object, p.Objects)
	keys := make([]string, p.Objects)
	for i, o := range pointers(p.Objects) {
		keys[i] = o.Key()
		all[keys[i]] = o
	}
	return timed(Reads, p.Events, func(i int) error {
		o := *all[keys[i%len(keys)]]
		runtime.KeepAlive(o)
		return nil
	})
}

// readUnderWritesFloor is pacedFloor with readers that copy pointers at the same time.
func readUnderWritesFloor(ctx context.Context, p Params) (Result, error) {
	read := copying(pointers(p.Objects))
	return whileReading(ctx, p.Readers, func(context.Context) error { return read(0) },
		func() (Result, error) { return pacedFloor(ctx, p) })
}

// pointers makes n objects.
func pointers(n int) []*Object {
	all := make([]*Object, n)
	object := objects(n)
	for i := range all {
		o := object(i)
		all[i] = &o
	}
	return all
}

// copying returns a function that copies a pointer to each of all.
func copying(all []*Object) func(int) error {
	return func(int) error {
		list := make([]*Object, len(all))
		copy(list, all)
		runtime.KeepAlive(list)
		return nil
	}
}
