// Package askedwatch has a watch for tests: that of storage which others use, too. Such storage has
// revisions without an event for the watch, so it says how far it is only with an event, or when asked.
//
//	storage ──batches──▶ Watch ──events alone──▶ Reflector
//	                       ▲                        │
//	                       └─── RequestProgress ────┘
package askedwatch

import (
	"context"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Watch is such a watch.
type Watch struct {
	backend.Watcher
	lost    *atomic.Int32
	notify  func()
	through store.Revision
	asked   atomic.Bool // since the last Next
}

// New returns a watch that passes on what w, which was opened with opts, has. Each request for
// progress takes one from lost, and is lost while that is not negative.
func New(w backend.Watcher, opts backend.WatchOptions, lost *atomic.Int32) *Watch {
	return &Watch{Watcher: w, lost: lost, notify: opts.Notify, through: opts.From}
}

// RequestProgress asks how far storage is, unless the request is lost.
func (w *Watch) RequestProgress(context.Context) error {
	if w.lost.Add(-1) < 0 {
		w.asked.Store(true)
		w.notify()
	}
	return nil
}

// Next returns the next events, and how far storage is if there are some or it was asked.
func (w *Watch) Next(limit int) (backend.Batch, error) {
	b, err := w.Watcher.Next(limit)
	b.After = w.through
	if len(b.Events) > 0 || w.asked.Swap(false) {
		w.through = b.Through
	}
	b.Through = w.through
	return b, err
}
