package world

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// onUnanswered changes the calls of writes that storage has left without an answer.
func onUnanswered(spoil func(c *faulty.Call, proceed func())) func(*once) seams[Thing] {
	return onStorage(func(*World[Thing], *once) faulty.Rule {
		return faulty.Rule{Ops: faulty.Writes, Do: func(_ context.Context, c *faulty.Call, proceed func()) {
			if proceed(); backend.Uncertain(c.Err) {
				spoil(c, proceed)
			}
		}}
	})
}

// tryAgain makes the write once more.
func tryAgain(c *faulty.Call, proceed func()) {
	c.Err = nil
	proceed()
}

// takeForFailed says that nothing was written.
func takeForFailed(c *faulty.Call, _ func()) { c.Err = storage.ErrOutage }

// takeForDone acknowledges what was to be written.
func takeForDone(c *faulty.Call, _ func()) {
	if c.Err = nil; c.Op == faulty.OpRemove {
		c.Object = c.Prev
		return
	}
	c.Object = c.Draft
}

// doubtAnswer says that the outcome of a write is unknown which storage has acknowledged.
func doubtAnswer(_ *World[Thing], o *once) faulty.Rule {
	return faulty.Rule{Ops: faulty.Writes, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		if c.Err == nil && o.now() {
			c.Err = &backend.UncertainError{Verb: c.Op.String(), Key: c.Key, Cause: errors.New("no reason")}
		}
	})}
}

// dropUnanswered withholds from watches the events of writes that were done at once without an answer.
func dropUnanswered(o *once) seams[Thing] {
	done := map[store.Revision]bool{}
	s := onStorage(func(w *World[Thing], _ *once) faulty.Rule {
		return faulty.Rule{Ops: faulty.Writes, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
			if backend.Uncertain(c.Err) {
				done[w.storage.Unanswered[0].Revision] = true
			}
		})}
	})(o)
	s.deliver = func(_ *watch[Thing], ev engine.Event[Thing]) []engine.Event[Thing] {
		if done[ev.Revision] && !ev.Is(engine.Initial) && ev.Type != engine.Bookmark {
			return nil
		}
		return []engine.Event[Thing]{ev}
	}
	return s
}
