package bench

import (
	"context"
	"sync/atomic"
	"time"
)

// beside measures a healthy watcher with the companion on the same store.
func (c companion) beside(ctx context.Context, s Store, p Params) (Result, error) {
	object := objects(p.Objects)
	rev, err := fill(ctx, s, 1, object)
	if err != nil {
		return nil, err
	}
	other := companions{companion: c, store: s, stop: make(chan struct{}), done: make(chan error, 1)}
	other.newest.Store(rev)
	crowd := newCrowd(p.Watchers, p.Watchers, newWriter(p, object))
	if err := crowd.open(watching(ctx, s, rev, everything)); err != nil {
		return nil, err
	}
	go func() { other.done <- other.run(ctx) }()
	took, err := crowd.run(ctx, other.write)
	close(other.stop)
	if failed := <-other.done; err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	l := crowd.latency()
	return append(crowd.result(took), micros(Max, l.at(100)), count(ForceClosed, other.closed)), nil
}

// companions opens and closes companions, one after the other.
type companions struct {
	companion
	store Store
	// newest is the revision of the newest write, and written the number of writes.
	newest, written atomic.Uint64
	stop            chan struct{}
	done            chan error
	closed          int64
}

// write writes to the store and records revision and count.
func (c *companions) write(ctx context.Context, o Object) error {
	rev, err := c.store.Write(ctx, o)
	c.newest.Store(rev)
	c.written.Add(1)
	return err
}

// run keeps a companion watching until stop, replacing it if it reconnects.
func (c *companions) run(ctx context.Context) error {
	if !c.present {
		return nil
	}
	var replace <-chan time.Time
	if c.reconnects {
		ticker := time.NewTicker(reconnectEvery)
		defer ticker.Stop()
		replace = ticker.C
	}
	for {
		end, err := c.open(ctx)
		if err != nil {
			return err
		}
		select {
		case <-replace:
			end(ctx)
		case <-c.stop:
			end(ctx)
			return nil
		}
	}
}

// open opens a companion at the newest write. The returned function stops it, and
// counts it if the system had closed it before.
func (c *companions) open(ctx context.Context) (end func(context.Context), err error) {
	if c.drains {
		w, err := c.store.Watch(ctx, Selection{}, c.newest.Load(), func(int64) {})
		return func(context.Context) { c.endDraining(w) }, err
	}
	// Load newest before written, and expect one event less than written says: the
	// last write may be in newest already and not yet in written.
	from := c.newest.Load()
	before := c.written.Load()
	w, err := c.store.Watch(ctx, Selection{}, from, nil)
	return func(ctx context.Context) {
		sure := int(c.written.Load()-before) - 1
		if w.Drain(ctx, sure) < sure {
			c.closed++
		}
		w.Stop()
	}, err
}

func (c *companions) endDraining(w Watch) {
	select {
	case <-w.Done():
		c.closed++
	default:
	}
	w.Stop()
}
