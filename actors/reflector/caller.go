package reflector

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// caller makes blocking calls to the source, one at a time. It is a child of the
// Reflector on the executor for blocking actors, so that the Reflector itself
// stays responsive and can cancel the call when it is stopped.
type caller struct {
	source backend.ListerWatcher
	// identifies: lists say which storage they are of.
	identifies bool
	reply      func(message) bool
}

// Receive makes the call and sends the answer. If the Reflector has stopped, or the source ends
// the goroutine after it has opened a watch, the watch is closed: a panic in that cannot be
// reported.
func (c *caller) Receive(_ *actors.Context, r request) {
	a, sent := answer{request: r.id}, false
	defer func() {
		if !sent {
			_ = a.discard()
		}
	}()
	c.call(r, &a)
	sent = c.reply(a)
}

// call makes one call to the source. A panic in it is the answer's error.
func (c *caller) call(r request, a *answer) {
	if r.do == doList {
		c.list(r, a)
	} else {
		c.watch(r, a)
	}
	switch {
	case a.err != nil:
		_ = a.discard() // a watcher returned together with an error is not used
		a.watcher, a.err = nil, withCause(r.ctx, a.err)
	case r.do == doOpen && a.watcher == nil, r.do == doList && a.page == nil:
		a.err = ErrContract
	}
}

// list calls List, and identifies the storage that the page is of. A watch from the list's
// revision then finds whether storage went back between the two. If storage that usually tells
// the identity with the list has not done so this time, it is asked, and lists once more.
func (c *caller) list(r request, a *answer) {
	first := r.list.Continue == ""
	if first && c.identifies {
		if c.page(r, a); a.err != nil || a.page == nil {
			return
		}
		if a.storeID = a.page.StoreID; a.storeID != "" {
			return
		}
	}
	if first {
		a.storeID, a.err = identify(r, c.source)
		if a.err != nil || c.identifies && a.storeID == "" {
			return
		}
	}
	if c.page(r, a); a.err == nil && a.page != nil {
		c.identifyLast(r, a)
	}
}

// identifyLast asks for the identity after a list's last page, as list has before its first, if
// the page does not say. Storage that went back between the question and the page would
// otherwise be taken for what it was before, and objects of equal revisions for unchanged ones.
func (c *caller) identifyLast(r request, a *answer) {
	if a.page.StoreID != "" {
		a.storeID = a.page.StoreID
		return
	}
	if a.page.Continue != "" {
		return
	}
	before := a.storeID
	if a.storeID, a.err = identify(r, c.source); a.err == nil && r.list.Continue == "" && a.storeID != before {
		a.err = replacedMeanwhile(a.page.Revision, a.page)
	}
}

// page calls List once.
func (c *caller) page(r request, a *answer) {
	contained(a, "ListerWatcher.List", r.list.Prefix, func() { a.page, a.err = c.source.List(r.ctx, r.list) })
}

// watch calls Watch, and identifies the storage of the watch that runs. A watch that does
// not know it is of the storage that there is now.
func (c *caller) watch(r request, a *answer) {
	contained(a, "ListerWatcher.Watch", r.from.Prefix, func() { a.watcher, a.err = c.source.Watch(r.ctx, r.from) })
	if a.err != nil || a.watcher == nil {
		return
	}
	if of, knows := a.watcher.(backend.Identifier); knows {
		a.storeID, a.err = identity(r, of.StoreID)
		return
	}
	a.storeID, a.err = identify(r, c.source)
}

// identify returns the identity of the source's storage, empty if the source does
// not know it.
func identify(r request, source backend.ListerWatcher) (string, error) {
	return identity(r, func(ctx context.Context) (string, error) { return backend.StoreID(ctx, source) })
}

// identity returns what of does, empty if it does not know the storage.
func identity(r request, of func(context.Context) (string, error)) (id string, err error) {
	if panicked := usercode.Call("Identifier.StoreID", r.list.Prefix, func() { id, err = of(r.ctx) }); panicked != nil {
		return "", panicked
	}
	if errors.Is(err, store.ErrUnsupported) {
		return "", nil
	}
	return id, err
}

// contained makes a call whose panic is the answer's error.
func contained(a *answer, what, prefix string, call func()) {
	if err := usercode.Call(what, prefix, call); err != nil {
		a.err = err
	}
}

// withCause adds the cause of the cancellation to the error of a call that timed out.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeout) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// discard closes a watcher that will not be used.
func (a answer) discard() error {
	if a.watcher == nil {
		return nil
	}
	return closeWatch(a.watcher)
}

// closeWatch closes a watch and contains a panic in that.
func closeWatch(w backend.Watcher) error {
	return usercode.Call("Watcher.Close", "", w.Close)
}
