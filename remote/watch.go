package remote

import (
	"context"
	"errors"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// watch is a [backend.Watcher] over one connection after another.
//
//	stream ──add──▶ events ──Next──▶ consumer
//	   ▲              │ full: wait for room
//	   └──────────────┘
type watch struct {
	backend *Backend
	prefix  string
	notify  func()
	cancel  context.CancelFunc
	// storage identifies the storage that the watch began at, "" if no answer has told it.
	storage string
	// done is closed when the goroutine has ended.
	done chan struct{}

	mu   sync.Mutex
	room sync.Cond
	// events have been read and not taken; held is the sum of their sizes.
	events []received
	held   int
	// early: the watch was begun for a list, and has not been asked for.
	early bool
	// through is the revision up to which events have been read, taken the one up to
	// which they have been taken.
	through, taken store.Revision
	// waiting: the last Next returned no events, so whatever comes next calls notify.
	waiting bool
	// err ends the watch once the events are taken; [store.ErrClosed] ends it at once.
	err error

	// notifying is held during notify, so that Close can wait for it. silent, which Close
	// sets, prevents further calls.
	notifying sync.Mutex
	silent    bool
}

// received is an event and the size of its frame in bytes.
type received struct {
	event store.Event
	size  int
}

// Watch starts a watch of the events after opts.From, zero being the newest revision. It
// blocks until the server has accepted the watch, and unless opts.NoPrev lists the state
// at that revision first. ctx bounds the start, not the watch.
//
// Errors: a [*store.ExpiredError] if the server no longer has the events after opts.From, with
// opts.NoPrev perhaps only from Next, since servers answer such a watch and end it by an event;
// a [*store.FutureError] if opts.From is in the future, another [*StatusError],
// [backend.ErrUnavailable], [store.ErrClosed], or ctx's cause.
func (b *Backend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	if err := errors.Join(b.open(), opts.Validate()); err != nil {
		return nil, err
	}
	if w := b.takeOver(opts); w != nil {
		return w, nil
	}
	w, err := b.startWatch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// startWatch starts a watch of a backend that is open.
func (b *Backend) startWatch(ctx context.Context, opts backend.WatchOptions) (*watch, error) {
	from, storage := opts.From, ""
	if from == 0 {
		var err error
		if from, storage, err = b.newest.ask(ctx); err != nil {
			return nil, err
		}
	}
	s := &stream{backend: b, request: b.collection(opts.Prefix), at: position{through: from}, storage: storage, pause: b.config.MinPause}
	if !opts.NoPrev {
		if err := s.remember(ctx, opts.Prefix, from); err != nil {
			return nil, s.watchError(err)
		}
	}
	life, cancel, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	w := &watch{
		backend: b, prefix: opts.Prefix, notify: opts.Notify, cancel: cancel, done: make(chan struct{}),
		through: from, taken: from, waiting: true, storage: s.storage,
	}
	w.room.L = &w.mu
	s.watch = w
	if !b.add(w) {
		cancel()
		s.hangUp()
		return nil, store.ErrClosed
	}
	go s.run(life)
	return w, nil
}

// add registers w with Close. It reports false if the backend is closed.
func (b *Backend) add(w *watch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running[w] = struct{}{}
	return true
}

func (b *Backend) remove(w *watch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, w)
}

// Next returns events that have been read, up to limit and whatever else has the revision
// of the last. It does not block.
func (w *watch) Next(limit int) (backend.Batch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil && (len(w.events) == 0 || errors.Is(w.err, store.ErrClosed)) {
		return backend.Batch{}, w.err
	}
	batch := backend.Batch{After: w.taken, Through: w.through}
	if n := w.whole(max(limit, 1)); n > 0 {
		batch.Events = w.take(n)
		if len(w.events) > 0 {
			batch.Through = batch.Events[n-1].Revision
		}
	}
	w.waiting = len(batch.Events) == 0
	w.taken = batch.Through
	return batch, nil
}

// whole returns how many events to take: limit, and as many more as have the revision of
// the last one.
func (w *watch) whole(limit int) int {
	n := min(limit, len(w.events))
	for n > 0 && n < len(w.events) && w.events[n].event.Revision == w.events[n-1].event.Revision {
		n++
	}
	return n
}

// take removes the first n events, which makes room for more.
func (w *watch) take(n int) []store.Event {
	events := make([]store.Event, n)
	for i, r := range w.events[:n] {
		events[i] = r.event
		w.held -= r.size
	}
	clear(w.events[:n])
	if w.events = w.events[n:]; len(w.events) == 0 {
		w.events = nil // a burst's array may be large
	}
	w.room.Broadcast()
	return events
}

// put waits for room, and then adds the events that arrived. It reports false if the
// watch has ended.
func (w *watch) put(arrived []received) bool {
	w.mu.Lock()
	for w.held >= w.limit() && w.err == nil {
		w.room.Wait()
	}
	ok := w.err == nil
	for _, r := range arrived {
		w.through = max(w.through, r.event.Revision)
		if ok && r.event.Type != store.Bookmark && store.HasPrefix(r.event.Object.Key, w.prefix) {
			w.events, w.held = append(w.events, r), w.held+r.size
		}
	}
	w.mu.Unlock()
	if len(arrived) > 0 {
		w.wake()
	}
	return ok
}

// limit returns how many bytes of events are read ahead.
func (w *watch) limit() int {
	if w.early {
		return max(w.backend.config.BufferBytes, w.backend.config.MaxListBytes)
	}
	return w.backend.config.BufferBytes
}

// setEarly says whether the watch has yet to be asked for.
func (w *watch) setEarly(early bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.early = early
	w.room.Broadcast()
}

// wake calls notify if the consumer waits. It is notified before any other call of wake returns, so
// that a Close of the backend, which wakes it and then closes the watch, leaves no consumer waiting.
func (w *watch) wake() {
	w.notifying.Lock()
	defer w.notifying.Unlock()
	w.mu.Lock()
	due := w.waiting && !w.silent
	w.waiting = false
	w.mu.Unlock()
	if due {
		w.notify()
	}
}

// end makes Next return err once the events are taken.
func (w *watch) end(err error) {
	w.cancel() // first, so that the goroutine knows that no connection has failed
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.room.Broadcast()
	w.mu.Unlock()
	w.wake()
}

// Close ends the watch and waits for its goroutine, and for a call of notify that runs.
func (w *watch) Close() {
	w.notifying.Lock()
	w.silent = true
	w.notifying.Unlock()
	w.cancel() // first, as in end
	w.mu.Lock()
	w.err, w.events, w.held = store.ErrClosed, nil, 0
	w.room.Broadcast()
	w.mu.Unlock()
	<-w.done
	w.backend.remove(w)
}
