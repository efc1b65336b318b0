package etcd

import (
	"context"
	"slices"
	"strconv"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
)

// Watch follows the changes after opts.From. It returns when etcd has accepted the
// watch. Each watch has a goroutine and a stream of its own.
//
// Errors: [*store.ExpiredError] if opts.From was compacted, [*store.FutureError] if it has not
// happened, [*store.KeyError] or [*usercode.ConfigError] for opts, [backend.ErrUnavailable],
// [backend.ErrDenied], [store.ErrClosed], ctx's cause.
func (b *Backend) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	ctx, call, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer call.end()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	at, err := b.position(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.checkStart(ctx, opts, at); err != nil {
		return nil, err
	}
	if opts.From == 0 {
		opts.From = at.revision
	}
	w := b.newWatcher(opts)
	stream, err := w.open(ctx)
	if err != nil {
		w.stop()
		return nil, err
	}
	if !b.start(w, stream) {
		w.stop()
		return nil, store.ErrClosed
	}
	return w, nil
}

// start makes w a watch of b, and reports false if b is closed.
func (b *Backend) start(w *watcher, s *stream) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.watches[w] = struct{}{}
	b.running.Go(func() { w.follow(s) })
	return true
}

// watcher is a watch.
//
//	etcd ──▶ client ──▶ follow (goroutine) ──▶ pending ──Next──▶ consumer
//	                       ▲     │ full: break off       │
//	                       └─────┴── half of it read ◀───┘
type watcher struct {
	backend *Backend
	prefix  string
	noPrev  bool

	// life ends when the watch ends; stop ends it. The streams' contexts are of it, so that
	// it has ended, with the reason, before the client closes a stream.
	life context.Context
	stop context.CancelFunc
	// chased has a token when wanted was raised, room when half of pending was read.
	chased, room chan struct{}
	// sent is the revision of the last event that etcd has sent, or the one after which it was to begin. Only
	// the goroutine that receives uses it.
	sent store.Revision

	mu sync.Mutex // guards all below
	// pending are the changes that were received and not read, bytes their size.
	pending []change
	bytes   int
	// received is the revision up to which everything is in pending or was read, through
	// the one up to which everything was read.
	received, through store.Revision
	// wanted is the revision that a reader waits for: until it is received the watch
	// requests progress.
	wanted store.Revision
	// arrivals are the calls that wait for received to reach a revision.
	arrivals []arrival
	// full: the watch has no stream until there is room in pending.
	full bool
	// err ends the watch after pending; nil while it receives.
	err     error
	waiting waiting.List

	waiting.Follower
}

// change is an event, and how many bytes it takes.
type change struct {
	event store.Event
	bytes int
}

// arrival is closed when a revision is received.
type arrival struct {
	revision store.Revision
	closed   chan struct{}
}

var _ backend.ProgressRequester = (*watcher)(nil)

func (b *Backend) newWatcher(opts backend.WatchOptions) *watcher {
	w := &watcher{
		backend: b, prefix: opts.Prefix, noPrev: opts.NoPrev,
		sent: opts.From, received: opts.From, through: opts.From,
		chased: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	w.life, w.stop = context.WithCancel(b.life)
	w.Init(opts.Notify)
	return w
}

// newStream returns a context for a watch with a stream of its own, which waits neither
// for the events nor for the progress of other watches. It ends with life, or when the member
// that serves the watch has no leader.
func (b *Backend) newStream(life context.Context) context.Context {
	number := strconv.FormatUint(b.streams.Add(1), 10)
	return metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(life), "watchmill-stream", number)
}

// Next returns the changes since the previous call: at most limit, where less than one
// counts as one, and also the rest of the last one's revision. It does not block.
func (w *watcher) Next(limit int) (backend.Batch, error) {
	if err := w.Ended(); err != nil {
		return backend.Batch{}, err
	}
	w.mu.Lock()
	batch, err := w.take(max(1, limit))
	w.mu.Unlock()
	if err != nil {
		return backend.Batch{}, w.Fail(err)
	}
	return batch, nil
}

// take takes a batch out of pending. The caller holds the lock.
func (w *watcher) take(limit int) (backend.Batch, error) {
	batch := backend.Batch{After: w.through}
	if len(w.pending) == 0 {
		if w.err != nil {
			return batch, w.err
		}
		w.through = w.received
	}
	if floor := store.Revision(w.backend.floor.Load()); w.through < floor {
		return batch, &store.ExpiredError{Requested: w.through, Oldest: floor}
	}
	batch.Events = w.cut(limit)
	if len(w.pending) == 0 {
		w.through = w.received
	} else if n := len(batch.Events); n > 0 {
		w.through = batch.Events[n-1].Revision
	}
	batch.Through = w.through
	if len(batch.Events) == 0 {
		w.waiting.Add(&w.Follower)
	}
	if w.full && w.halfEmpty() {
		w.full = false
		signal(w.room)
	}
	return batch, nil
}

// cut removes events from the front of pending. It never splits a revision.
// The caller holds the lock.
func (w *watcher) cut(limit int) []store.Event {
	n := min(limit, len(w.pending))
	for n > 0 && n < len(w.pending) && w.pending[n].event.Revision == w.pending[n-1].event.Revision {
		n++
	}
	if n == 0 {
		return nil
	}
	events := make([]store.Event, n)
	for i, c := range w.pending[:n] {
		events[i] = c.event
		w.bytes -= c.bytes
	}
	clear(w.pending[:n])
	if w.pending = w.pending[n:]; len(w.pending) == 0 {
		w.pending = nil
	}
	return events
}

func (w *watcher) halfEmpty() bool {
	return len(w.pending) <= w.backend.config.Buffer.Events/2 && w.bytes <= w.backend.config.Buffer.Bytes/2
}

// RequestProgress reads the cluster's revision, and makes the watch request progress until
// it has reached that. It waits for the read only.
func (w *watcher) RequestProgress(ctx context.Context) error {
	ctx, call, err := w.backend.begin(ctx)
	if err != nil {
		return err
	}
	defer call.end()
	at, err := w.backend.position(ctx)
	if err != nil {
		return err
	}
	w.chase(at.revision)
	if w.position() >= at.revision {
		w.wakeReader()
	}
	return nil
}

// chase makes the watch request progress until it has received everything up to rev.
func (w *watcher) chase(rev store.Revision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rev > w.received && rev > w.wanted {
		w.wanted = rev
		signal(w.chased)
	}
}

// position returns the revision up to which everything was received.
func (w *watcher) position() store.Revision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.received
}

// behind reports whether a reader waits for a revision that was not received yet.
func (w *watcher) behind() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.received < w.wanted
}

// awaitArrival waits until everything up to rev was received, or ctx ends. It does not
// wait for a watch that is full or has ended.
func (w *watcher) awaitArrival(ctx context.Context, rev store.Revision) {
	w.mu.Lock()
	if w.received >= rev || w.full || w.err != nil {
		w.mu.Unlock()
		return
	}
	a := arrival{rev, make(chan struct{})}
	w.arrivals = append(w.arrivals, a)
	w.mu.Unlock()
	select {
	case <-a.closed:
	case <-ctx.Done():
	}
}

// arrive releases the calls that wait for revisions up to rev. The caller holds the lock.
func (w *watcher) arrive(rev store.Revision) {
	w.arrivals = slices.DeleteFunc(w.arrivals, func(a arrival) bool {
		if a.revision <= rev {
			close(a.closed)
		}
		return a.revision <= rev
	})
}

// wakeReader makes the consumer call Next, if it waits.
func (w *watcher) wakeReader() { waiting.WakeAll(w.reader()) }

// reader returns the consumer, to be woken, if it waits.
func (w *watcher) reader() []*waiting.Follower {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting.Take()
}

// finish ends the watch with err after the pending events, or without them if err is
// [store.ErrClosed].
func (w *watcher) finish(err error) {
	w.stop()
	w.backend.mu.Lock()
	delete(w.backend.watches, w)
	w.backend.mu.Unlock()
	w.mu.Lock()
	if err == store.ErrClosed {
		w.pending, w.bytes, w.received, w.err = nil, 0, w.through, err
	} else if w.err == nil {
		w.err = err
	}
	w.arrive(1<<64 - 1)
	woken := w.waiting.Take()
	w.mu.Unlock()
	waiting.WakeAll(woken)
}

// wentBack ends the watch if it is beyond the cluster's present revision.
func (w *watcher) wentBack(now store.Revision) {
	if received := w.position(); received > now {
		w.finish(&store.FutureError{Requested: received, Current: now})
	}
}

// Close ends the watch. It waits for a notification that is running, so it must not
// be called from one.
func (w *watcher) Close() {
	w.Follower.Close(&w.mu, &w.waiting)
	w.finish(store.ErrClosed)
}

// signal leaves a token, unless there is one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
