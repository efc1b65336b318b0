package serve

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/serve/internal/params"
	"github.com/watchmill/watchmill/serve/internal/status"
	"github.com/watchmill/watchmill/store"
)

// defaultWatch is the shortest duration of a watch for which the client gives none. Such
// watches last up to twice that, at random, so that not all reconnect at once.
const defaultWatch = 30 * time.Minute

// errShuttingDown ends the watches of a server that shuts down.
var errShuttingDown = errors.New("the server is shutting down")

// watching is a watch that is being served: start finds what it is to send, begin answers the request, run sends, and
// stop releases what it has.
type watching struct {
	frames
	// ctx is the request's, until the watch takes over its connection; then it never ends.
	ctx    context.Context
	stream registry.Stream
	// ended is why the server ended the watch, nil while it has not.
	ended atomic.Pointer[error]
	// bookmarks: the client asked for bookmarks.
	bookmarks bool
	// initial: the initial state is not complete yet.
	initial bool
	// begun: the request was answered.
	begun bool
	// outcome is why the watch has ended, nil if that was at its deadline, or it has not.
	outcome error
	// from is the revision that the watch continues from, zero for none.
	from engine.Revision
	// takeover is nil unless the watch may take over its connection.
	takeover *takeover
}

// newWatching returns the watch of a call.
func newWatching(c *call) *watching {
	return &watching{frames: frames{c: c, first: true}, ctx: c.r.Context(), takeover: c.takesOver()}
}

// start does everything that can fail before the answer begins, so that failures are
// answered with their status, except as failsByEvent says.
func (w *watching) start() error {
	c := w.c
	if last := c.r.Header.Get("Last-Event-ID"); c.form.Shape == accept.Events && last != "" {
		c.req.query.Set("resourceVersion", last)
		c.req.query.Del("sendInitialEvents")
		c.req.query.Del("resourceVersionMatch")
	}
	o, err := c.params().List()
	if err != nil {
		return err
	}
	w.bookmarks = o.Bookmarks
	if c.form.Shape.IsTable() {
		if w.table, err = c.table(c.encodings.EventTable); err != nil {
			return err
		}
	}
	opts := w.options(o)
	w.initial, w.initialEnd = opts.InitialState, o.Initial != nil && *o.Initial
	if w.stream, err = w.open(opts); err != nil {
		if !w.failsByEvent(err, &opts) {
			return err
		}
		w.stream, w.from = failedStart{why: err}, 0
	}
	c.running.started(w)
	return nil
}

// options returns the options of the engine's watch. It always has bookmarks, which mark
// the end of the initial state and keep quiet connections alive. It is detached from its
// context, with which next ends. Its name is that of the user, so that logs and metrics say whose
// watches are slow.
func (w *watching) options(o *params.List) engine.WatchOptions {
	opts := engine.WatchOptions{
		Name: w.c.user.Name,
		Key:  o.Key, Prefix: o.Prefix, LabelSelector: o.Labels, FieldSelector: o.Fields,
		From: o.Revision, InitialState: o.Revision == 0, Linearizable: o.Version == "",
		Bookmarks: true, Progress: o.Bookmarks && o.Progress, Timeout: o.Timeout, Detached: true,
	}
	if opts.Timeout == 0 {
		opts.Timeout = defaultWatch + rand.N(defaultWatch)
	}
	if o.Initial != nil {
		opts.InitialState = *o.Initial
	}
	return opts
}

// failsByEvent reports whether a watch that cannot start is answered all the same, with an ERROR event: if its
// position has left the window, as in Kubernetes. Some clients, such as client-go's RetryWatcher, list only
// after such an event, and repeat a request that was refused without end. An EventSource does the opposite.
func (w *watching) failsByEvent(err error, opts *engine.WatchOptions) bool {
	return errors.Is(err, engine.ErrExpired) && !opts.InitialState && w.c.form.Shape != accept.Events
}

// failedStart is the stream of a watch that could not start. It has no events.
type failedStart struct {
	registry.Stream // nil, since it has all methods itself
	why             error
}

func (f failedStart) Next(context.Context) ([]store.Event, error) { return nil, f.why }
func (failedStart) Item(*store.Object) registry.Item              { return registry.Item{} }
func (failedStart) Stop()                                         {}
func (failedStart) Revision() engine.Revision                     { return 0 }
func (failedStart) Lag() uint64                                   { return 0 }

// open starts the engine's watch. A shutdown of the server interrupts it, as the end of the
// request does. The start's context is not a child of the request's, which would keep a map of
// its children as long as the watch lasts.
func (w *watching) open(opts engine.WatchOptions) (registry.Stream, error) {
	request := w.ctx
	ctx, interrupt := context.WithCancelCause(w.c.withUser(context.WithoutCancel(request)))
	defer interrupt(nil) // the stream is detached from it
	go func() {
		select {
		case <-request.Done():
			interrupt(context.Cause(request))
		case <-ctx.Done():
		}
	}()
	w.c.running.starting(w, interrupt)
	defer w.c.running.startOver(w)
	stream, err := w.openWith(ctx, opts)
	if err != nil && errors.Is(context.Cause(ctx), errShuttingDown) {
		err = w.c.refuseDraining()
	}
	return stream, err
}

// openWith waits until there is what the watch continues from, and starts it.
func (w *watching) openWith(ctx context.Context, opts engine.WatchOptions) (_ registry.Stream, err error) {
	c := w.c
	if !opts.InitialState {
		// The engine's watch would wait in silence for a revision in the future.
		if err := c.resource.WaitForRevision(ctx, opts.From); err != nil {
			return nil, err
		}
	}
	if opts.From > 0 && !opts.InitialState {
		w.from = opts.From
		if opts.Timeline, err = c.resource.Timeline(ctx); err != nil {
			return nil, err
		}
		c.setStorageHeader(opts.Timeline)
	}
	return c.resource.Watch(ctx, opts)
}

// begin answers the request: from now on there is a watch.
func (w *watching) begin() (err error) {
	c := w.c
	c.forget()
	w.meter = newWatchMeter(c) // before the client knows
	if c.upgrades {
		if w.messages, err = c.upgrade(w.endBy); err != nil {
			return err
		}
	} else {
		w.sendHeader()
	}
	w.begun = true
	return nil
}

// forget drops what a watch does not need once it has started. Over HTTP/2 net/http keeps the
// request as long as the watch lasts; its headers and its URL have 600 bytes, which go unless
// a middleware may read them at the end.
func (c *call) forget() {
	c.req.query = nil
	if c.w.OfStream() && c.direct() != nil {
		c.r.Header, c.r.URL = nil, forgotten
	}
}

// forgotten is the URL of requests that were forgotten.
var forgotten = new(url.URL)

// sendHeader begins the answer of a watch that is not upgraded.
func (w *watching) sendHeader() {
	h := w.c.w.Header()
	h["Content-Type"] = asJSON
	h["Cache-Control"], h["X-Accel-Buffering"] = notChanged, notBuffered
	if w.c.form.Shape == accept.Events {
		h.Set("Content-Type", accept.EventStream)
	}
	if w.takeover != nil {
		h.Set("Connection", "close") // net/http does not get it back
	}
	w.c.w.BeginWatch()
	w.flush()
	if w.takeover != nil {
		w.takeOver()
	}
}

// run sends events until something ends the watch.
func (w *watching) run() { w.end(w.pump()) }

// pump sends batches until the stream ends, and returns why.
func (w *watching) pump() error {
	if err := w.sendStart(); err != nil {
		return err
	}
	for {
		events, err := w.next()
		if err != nil {
			return err
		}
		err = w.sendEvents(events)
		w.flush() // counts those that were sent, too
		if err != nil {
			return err
		}
	}
}

// next returns the next events.
func (w *watching) next() ([]store.Event, error) {
	events, err := w.stream.Next(w.ctx)
	if err == nil {
		return events, nil
	}
	if why := w.ended.Load(); why != nil {
		return nil, *why
	}
	return nil, err
}

// sendStart sends a bookmark at once if there is nothing to replay, so that the client
// knows that it has everything.
func (w *watching) sendStart() error {
	if !w.bookmarks || w.from == 0 || w.stream.Lag() > 0 {
		return nil
	}
	err := w.sendBookmark(&store.Event{Type: store.Bookmark, Revision: w.from})
	w.flush()
	return err
}

// sendEvents writes a batch, which has all events of its revisions. If the server ends the watch, it leaves out further
// revisions: the client may take long to read them.
func (w *watching) sendEvents(events []store.Event) error {
	for i := range events {
		last := i+1 == len(events) || events[i+1].Revision != events[i].Revision
		if err := w.sendEvent(&events[i], last); err != nil {
			return err
		}
		if why := w.ended.Load(); last && why != nil {
			return *why
		}
	}
	return nil
}

// sendEvent writes one event, from which a client may resume if it is the last of its revision. The protocol has none
// for what is not state: in its place is a bookmark, without which a replica would not know that it has everything.
func (w *watching) sendEvent(ev *store.Event, last bool) error {
	resumable := last && !w.initial // the state is not in the order of revisions: what is missing may be older
	switch {
	case ev.Type == store.Bookmark:
		return w.sendBookmark(ev)
	case ev.Type == store.Emitted && resumable:
		return w.sendBookmark(&store.Event{Type: store.Bookmark, Revision: ev.Revision})
	case ev.Type == store.Emitted:
		return nil
	}
	object, err := w.event(w.stream.Item(ev.Object))
	if err != nil {
		return err
	}
	var position engine.Revision // none
	if resumable {
		position = ev.Revision
	}
	w.send(ev.Type.String(), object, position)
	return nil
}

// sendBookmark writes a bookmark, or keeps the connection alive if the client wants none.
func (w *watching) sendBookmark(ev *store.Event) error {
	if ev.Marks&store.InitialEnd != 0 {
		w.initial = false
		w.meter.synced(time.Since(w.c.began))
	}
	if !w.bookmarks {
		w.keepAlive(ev.Revision)
		return nil
	}
	object, err := w.bookmark(ev)
	if err != nil {
		return err
	}
	w.send("BOOKMARK", object, ev.Revision)
	return nil
}

// end tells the client why the watch ended. A deadline or a shutdown only ends the
// stream; whatever needs another action of the client is an ERROR event.
func (w *watching) end(err error) {
	c := w.c
	if c.r.Context().Err() != nil {
		w.outcome = context.Cause(c.r.Context()) // the client is gone
		return
	}
	if errors.Is(err, errClientGone) {
		w.outcome = err
		return
	}
	if !errors.Is(err, engine.ErrDeadline) {
		w.outcome = err
	}
	w.extend() // for the end of the answer, too, which net/http sends
	if why := w.endStatus(err); why != nil {
		w.sendError(why)
	}
	w.flush()
}

// endStatus returns what the client is to react to, nil if the stream just ends.
func (w *watching) endStatus(err error) *status.Error {
	switch {
	case w.initial:
		// The informers of client-go answer any other status with a storm of requests.
		return status.TooMany("the watch ended before its initial state was complete: " + err.Error())
	case errors.Is(err, engine.ErrDeadline), errors.Is(err, errShuttingDown), errors.Is(err, engine.ErrEngineClosed), errors.Is(err, engine.ErrStopped):
		return nil
	}
	w.c.logFault(err)
	return status.ErrorOf(err, w.c.req.subject())
}

// sendError writes an ERROR event.
func (w *watching) sendError(why *status.Error) {
	text, err := json.Marshal(status.Of(why, w.c.req.subject()))
	if err != nil {
		return // cannot happen: a Status is strings and numbers
	}
	w.send("ERROR", text, 0)
}

// endBy ends the watch, once it has a stream, for a reason that is not the stream's. It may be
// called concurrently, and more than once.
func (w *watching) endBy(why error) {
	w.ended.CompareAndSwap(nil, &why)
	w.stream.Stop()
}

// stop releases what the watch has, whether it has started or not.
func (w *watching) stop() {
	defer w.c.running.ended(w)
	if w.takeover != nil {
		defer w.takeover.leave()
	}
	if w.stream != nil {
		defer w.stream.Stop()
	}
	if w.messages != nil {
		defer func() { w.messages.to.Close(w.closeCode()) }()
	}
	w.meter.ended()
}

// closeCode returns the code of [Messages].Close for what the watch has ended by.
func (w *watching) closeCode() int {
	switch {
	case w.c.aborted:
		return closedFailed
	case errors.Is(w.outcome, errShuttingDown):
		return closedGoing
	}
	return closedNormally
}
