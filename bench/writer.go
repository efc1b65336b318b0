package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// writer writes, and records when each write was due.
type writer struct {
	// events is the number of writes, and rate the writes per second; a rate of zero is
	// unlimited. The i-th write is that of writer i modulo writers.
	events, rate, writers int
	// object returns the i-th object to write; run sets its Seq.
	object func(i int) Object

	start time.Time
	// due is when each write was due, in nanoseconds since start. An element is
	// set before its write begins, so a receiver of the write can read it.
	due []int64
}

func newWriter(p Params, object func(i int) Object) *writer {
	return &writer{events: p.Events, rate: p.Rate, writers: max(p.Writers, 1), object: object, start: time.Now(), due: make([]int64, p.Events)}
}

// now returns the time since start, in nanoseconds.
func (w *writer) now() int64 { return int64(time.Since(w.start)) }

// since returns how long ago the write seq was due, in nanoseconds.
func (w *writer) since(seq int64) int64 { return w.now() - w.due[seq] }

// run calls write for each object when it is due. It returns the writers' errors.
func (w *writer) run(ctx context.Context, write func(context.Context, Object) error) error {
	begin := w.now()
	failed := make([]error, w.writers)
	var all sync.WaitGroup
	for k := range failed {
		all.Go(func() { failed[k] = w.share(ctx, begin, k, write) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// share is run for the k-th writer, until its first error.
func (w *writer) share(ctx context.Context, begin int64, k int, write func(context.Context, Object) error) error {
	for i := k; i < w.events; i += w.writers {
		o := w.object(i)
		o.Seq = int64(i)
		w.due[i] = w.await(begin, i)
		if err := write(ctx, o); err != nil {
			return fmt.Errorf("write %d of %d: %w", i, w.events, err)
		}
	}
	return nil
}

// await waits until the i-th write is due and returns that time, in nanoseconds since
// start, even if earlier writes have delayed this one. After a sleep it returns the time of
// waking up, since a late wake-up is not a delay of the system.
func (w *writer) await(begin int64, i int) int64 {
	if w.rate == 0 {
		return w.now()
	}
	due := begin + int64(i)*int64(time.Second)/int64(w.rate)
	ahead := due - w.now()
	if ahead <= 0 {
		return due
	}
	time.Sleep(time.Duration(ahead))
	return w.now()
}

// storage is what [Store], [Server] and [Informer] have in common.
type storage interface {
	Write(ctx context.Context, o Object) (uint64, error)
}

// writerTo returns a function that writes to a storage.
func writerTo(s storage) func(context.Context, Object) error {
	return func(ctx context.Context, o Object) error {
		_, err := s.Write(ctx, o)
		return err
	}
}

// objects returns n objects in rotation, each with a node and an app of its own.
func objects(n int) func(i int) Object {
	all := make([]Object, max(n, 1))
	for i := range all {
		all[i] = Object{Name: fmt.Sprintf("pod-%06d", i), Node: nodeName(i), App: appName(i), Seq: Unmeasured}
	}
	return func(i int) Object { return all[i%len(all)] }
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }
func appName(i int) string  { return fmt.Sprintf("app-%05d", i) }

// fill writes n objects and waits until the cache has them. It returns the
// revision of the last.
func fill(ctx context.Context, s Store, n int, object func(i int) Object) (rev uint64, err error) {
	for i := range n {
		if rev, err = s.Write(ctx, object(i)); err != nil {
			return 0, fmt.Errorf("fill: %w", err)
		}
	}
	return rev, s.WaitFor(ctx, rev)
}
