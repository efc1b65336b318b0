package remote

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// A cache lists the state and then watches from the list's revision. By then that may have left the
// server's window: it was the oldest there, or the list has many pages, or the link is slow, and there are
// many writers. If the watch were refused for that, the cache would list again, for as long as the writers
// are that fast. So the list begins the watch, too, which reads ahead until it is asked for:
//
//	List with State ──▶ hold: a watch from its revision ──▶ Watch from there takes it over
//	                         └──▶ no Watch for holdTime, or another List with State: closed
//
// If it stopped reading, it would leave the window after all. So it may read ahead as much as the list may have.
type hold struct {
	watch *watch
	from  store.Revision
	// late closes the watch holdTime after the last part of its list.
	late *time.Timer
	// spoke is closed when the watch has something to return.
	spoke chan struct{}
}

const (
	// holdTime is how long a watch waits for its consumer, which may have to ask for more pages first, and has a
	// million objects to apply.
	holdTime = 10 * time.Minute
	// holdProof is how long a list of a past state waits for the first event of its watch. If a server
	// still has the changes, it sends one or a bookmark at once, and otherwise an error.
	holdProof = time.Second
)

// pageToWatch requests the first page of a list of the state at a revision, zero for the newest, and begins
// the watch that is to follow.
func (b *Backend) pageToWatch(ctx context.Context, r *request, query url.Values, at store.Revision) (*page, error) {
	if err := b.holdBefore(ctx, at); err != nil {
		return nil, err
	}
	var refused error
	r.revised = func(listed store.Revision) error {
		refused = b.holdAfter(ctx, at, listed)
		return refused
	}
	page, err := b.page(ctx, r, query)
	r.revised = nil // further pages are of the same revision
	switch {
	case refused != nil:
		return nil, refused
	case err != nil:
		b.letGo(b.held.Load())
		return nil, listError(err, at, false)
	}
	return page, nil
}

// holdBefore begins the watch of a list of the state at a revision before that is requested, if it is a
// past one: it may be the oldest that the server has. One that cannot be watched from is not listed, since
// the error says which one can.
func (b *Backend) holdBefore(ctx context.Context, at store.Revision) error {
	b.letGo(b.held.Load())
	if at <= 1 { // the newest, or the first, whose list may have a later revision
		return nil
	}
	return b.holdPast(ctx, at)
}

// holdAfter begins the watch of a list of the state at a revision once its answer has told which one that is.
func (b *Backend) holdAfter(ctx context.Context, at, listed store.Revision) error {
	switch at {
	case 0:
		_, _ = b.hold(ctx, listed) // if it fails, the Watch to come says why
		return nil
	case 1:
		return b.holdPast(ctx, listed)
	}
	return nil
}

// holdPast holds the changes after a past revision. It returns a [*store.ExpiredError] if the server no
// longer has them.
func (b *Backend) holdPast(ctx context.Context, from store.Revision) error {
	h, err := b.hold(ctx, from)
	if h != nil {
		err = h.proof(ctx)
	}
	if errors.Is(err, store.ErrExpired) {
		b.letGo(h)
		return err
	}
	return nil // whatever else it is, the Watch to come meets it again
}

// hold begins a watch from a revision, in place of one that is held.
func (b *Backend) hold(ctx context.Context, from store.Revision) (*hold, error) {
	h := &hold{from: from, spoke: make(chan struct{})}
	var err error
	h.watch, err = b.startWatch(ctx, backend.WatchOptions{From: from, NoPrev: true, Notify: func() { close(h.spoke) }}) // once: no Next asks for more
	if err != nil {
		return nil, err
	}
	h.watch.setEarly(true)
	h.late = time.AfterFunc(holdTime, func() { b.letGo(h) })
	if before := b.held.Swap(h); before != nil {
		before.close()
	}
	return h, nil
}

// proof waits until the server has sent something, and returns what has ended the watch, if anything has.
func (h *hold) proof(ctx context.Context) error {
	enough := time.NewTimer(holdProof)
	defer enough.Stop()
	select {
	case <-h.spoke:
	case <-enough.C:
	case <-ctx.Done():
	}
	h.watch.mu.Lock()
	defer h.watch.mu.Unlock()
	return h.watch.err
}

// takeOver returns the watch that is held for what opts ask for, nil if there is none.
func (b *Backend) takeOver(opts backend.WatchOptions) *watch {
	h := b.held.Load()
	if h == nil || h.from != opts.From || opts.Prefix != "" || !opts.NoPrev || !b.held.CompareAndSwap(h, nil) {
		return nil
	}
	h.late.Stop()
	h.watch.notifying.Lock()
	defer h.watch.notifying.Unlock()
	h.watch.notify = opts.Notify
	h.watch.setEarly(false)
	return h.watch
}

// keepHold lets the watch that is held, if there is one, wait for holdTime from now on.
func (b *Backend) keepHold() {
	if h := b.held.Load(); h != nil {
		h.late.Reset(holdTime)
	}
}

// letGo closes a watch that is still held; h may be nil.
func (b *Backend) letGo(h *hold) {
	if h != nil && b.held.CompareAndSwap(h, nil) {
		h.close()
	}
}

func (h *hold) close() {
	h.late.Stop()
	h.watch.Close()
}
