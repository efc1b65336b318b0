package faulty

import (
	"context"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Watch starts a watch that can be broken; see [backend.ListerWatcher].
func (b *Backend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	opts.State = opts.State && b.opts.ShareState
	c := &Call{Op: OpWatch, Key: opts.Prefix, WatchOptions: opts}
	var w *watch
	given := false
	defer func() {
		if w != nil && !given {
			w.Close() // the call has failed, or an action has panicked or ended its goroutine
		}
	}()
	b.do(ctx, c, func(beneath backend.Backend) {
		if w != nil {
			w.Close() // an action makes the call again
		}
		w, c.Err = b.open(ctx, beneath, c.WatchOptions)
	})
	switch {
	case c.Err != nil:
		return nil, c.Err
	case w == nil: // an action has not proceeded
		return nil, ErrInjected
	}
	given = true
	if of, knows := w.beneath.(backend.Identifier); knows {
		return &identifiedWatch{w, of}, nil
	}
	return w, nil
}

// open starts a watch on the underlying backend. A watch from now on needs its
// start revision, which it reports when it is broken or hangs.
func (b *Backend) open(ctx context.Context, beneath backend.Backend, opts backend.WatchOptions) (*watch, error) {
	if opts.From == 0 {
		var err error
		if opts.From, err = beneath.Revision(ctx); err != nil {
			return nil, err
		}
	}
	w := &watch{backend: b, prefix: opts.Prefix, tell: opts.Notify, at: opts.From}
	if opts.Notify != nil {
		opts.Notify = w.notify
	}
	var err error
	if w.beneath, err = beneath.Watch(ctx, opts); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches = append(b.watches, w)
	return w, nil
}

// identifiedWatch is a watch on an underlying one that knows which storage it is of.
type identifiedWatch struct {
	*watch
	backend.Identifier
}

// watch is a watch on the underlying backend, with faults.
type watch struct {
	backend *Backend
	beneath backend.Watcher
	prefix  string

	// telling is held while tell runs, so that Close waits for it.
	telling sync.Mutex
	tell    func()
	closed  bool

	mu     sync.Mutex // guards what follows
	broken error
	at     store.Revision // delivered up to there
	last   store.Event    // the last one delivered
	again  bool           // last is to be delivered once more
	silent *Fault         // whose rule makes it hang
}

// notify notifies the reader.
func (w *watch) notify() {
	w.telling.Lock()
	defer w.telling.Unlock()
	if !w.closed {
		w.tell()
	}
}

// Next returns the changes since the previous call, as changed by the rules. An
// error ends the watch.
func (w *watch) Next(limit int) (backend.Batch, error) {
	c := &Call{Op: OpNext, Key: w.prefix, Limit: limit, Position: w.position(), watch: w}
	if w.hangs() {
		return backend.Batch{After: c.Position, Through: c.Position}, nil
	}
	w.backend.do(context.Background(), c, func(backend.Backend) {
		c.Batch, c.Err = w.next(c.Limit)
	})
	if c.Err != nil {
		w.fail(c.Err)
		return backend.Batch{}, c.Err
	}
	w.delivered(c.Batch)
	return c.Batch, nil
}

// hang makes the watch silent until the fault is removed. It reports false if the
// watch is broken, which takes precedence.
func (w *watch) hang(f *Fault) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = f
	return w.broken == nil
}

// hangs reports whether a fault makes the watch silent.
func (w *watch) hangs() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken == nil && w.silent != nil && w.silent.holds()
}

// next reads from the underlying watch, unless this one is broken or has an event
// to repeat.
func (w *watch) next(limit int) (backend.Batch, error) {
	w.mu.Lock()
	broken, again, last, at := w.broken, w.again, w.last, w.at
	w.again = false
	w.mu.Unlock()
	switch {
	case broken != nil:
		return backend.Batch{}, broken
	case again:
		return backend.Batch{After: at, Through: at, Events: []store.Event{last}}, nil
	}
	return w.beneath.Next(limit)
}

func (w *watch) delivered(batch backend.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = batch.Through
	if n := len(batch.Events); n > 0 {
		w.last = batch.Events[n-1]
	}
}

// repeat makes the watch deliver its last event again, if there was one.
func (w *watch) repeat() {
	w.mu.Lock()
	w.again = w.last.Object != nil
	w.mu.Unlock()
	w.notify()
}

func (w *watch) position() store.Revision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// fail ends the watch with err, unless it has ended already.
func (w *watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == nil {
		w.broken = err
	}
}

// RequestProgress passes the request on, unless the watch is broken. If it hangs, the answer comes with
// what it holds back.
func (w *watch) RequestProgress(ctx context.Context) error {
	w.mu.Lock()
	broken := w.broken
	w.mu.Unlock()
	if broken != nil {
		return broken
	}
	return backend.RequestProgress(ctx, w.beneath)
}

// breakOff ends the watch and notifies its reader.
func (w *watch) breakOff(err error) {
	w.fail(err)
	w.notify()
}

// Close ends the watch. It waits for a notification that is running. It closes the underlying
// watch even if a rule does not let the call proceed, since that watch would keep history.
func (w *watch) Close() {
	w.telling.Lock()
	first := !w.closed
	w.closed = true
	w.telling.Unlock()
	if !first {
		return
	}
	b := w.backend
	b.mu.Lock()
	b.watches = slices.DeleteFunc(b.watches, func(other *watch) bool { return other == w })
	b.mu.Unlock()
	defer w.fail(store.ErrClosed)
	defer w.beneath.Close()
	c := &Call{Op: OpStop, Key: w.prefix, Position: w.position()}
	b.do(context.Background(), c, func(backend.Backend) { w.beneath.Close() })
}
