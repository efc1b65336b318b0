package watcher

import (
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// notifier calls the consumer of a watch made by [NewNotified].
type notifier struct {
	watch *Watch
	// mu is held while notify runs, so that close can wait for it.
	mu     sync.Mutex
	notify func() // nil once closed, or broken by a panic
}

// NewNotified makes a watch that reads feed for a consumer that calls [Watch.Take].
// After a Take that returned nothing, notify is called when there are events. It must
// not block. If it panics, the watch ends with a [*usercode.PanicError], which is
// passed to Feed.Report.
func NewNotified(feed *Feed, options Options, notify func()) *Watch {
	w := New(feed, options)
	w.target = &notifier{watch: w, notify: notify}
	w.kind.Store(int32(byNotify))
	return w
}

// signal calls the consumer. It must not be called with the watch's lock held.
func (n *notifier) signal() {
	if err := n.call(); err != nil {
		n.watch.end(err)
		if report := n.watch.feed.Report; report != nil {
			report(&EndError{n.watch.name, err})
		}
	}
}

func (n *notifier) call() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.notify == nil {
		return nil
	}
	err := usercode.Call("WatchOptions.Notify", "", n.notify)
	if err != nil {
		n.notify = nil
	}
	return err
}

// Take returns the next events, if any: at most limit, but always all of a revision.
// It does not block. Everything up to revision through has then been returned; zero
// means that the watch has not begun. The slice is shared: read it, do not change it.
// The error is the reason that the watch ended, each time.
//
// It is only for watches made by [NewNotified].
func (w *Watch) Take(limit int) (events []store.Event, through store.Revision, err error) {
	if err := w.consumeBy(byNotify); err != nil {
		return nil, 0, err
	}
	events, err = w.take()
	if n := wholeRevisions(events, max(limit, 1)); n < len(events) {
		w.hold(events[n:])
		events = events[:n:n]
	}
	w.passedAll(events, len(events))
	return events, store.Revision(w.resume.Load()), err
}

// Close ends the watch with [ErrStopped] without calling notify. It waits for a
// running call of notify, and must not be called from it.
func (w *Watch) Close() {
	if w.Member().Notified() {
		n := w.target.(*notifier)
		n.mu.Lock()
		n.notify = nil
		n.mu.Unlock()
	}
	w.Stop()
}
