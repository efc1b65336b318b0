package bolt

import (
	"context"
	"errors"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
)

// expiryRun is how many objects are deleted in one write.
const expiryRun = 1024

// expiryRetry is how long to wait before a deletion that failed is tried again.
const expiryRetry = time.Second

// deleteExpired deletes expired objects when the alarm rings.
func (b *Backend) deleteExpired() {
	if b.begin() != nil {
		return
	}
	defer b.end()
	b.expiryRang()
	if err := b.deleteAllExpired(); err != nil && !errors.Is(err, store.ErrClosed) {
		b.retryExpiry(err)
	}
}

// expiryRang records that the alarm rang.
func (b *Backend) expiryRang() {
	b.mu.Lock()
	defer b.mu.Unlock() // even if the clock ends the goroutine
	if !b.closed {
		b.expire.Rang()
	}
}

// retryExpiry reports why a deletion failed, and schedules another attempt if that may
// help.
func (b *Backend) retryExpiry(err error) {
	b.file.failed(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && backend.Retryable(err) {
		b.expire.SetIn(expiryRetry)
	}
}

// deleteAllExpired deletes all expired objects, in the order in which the queue has them.
func (b *Backend) deleteAllExpired() error {
	for {
		now, err := expiry.Now(b.clock)
		if err != nil {
			return err
		}
		w := &expiring{backend: b, now: now}
		if err := b.file.queue.Do(context.Background(), w); err != nil || len(w.changes) < expiryRun {
			return err
		}
	}
}

// expiring deletes up to a run of objects that have expired.
type expiring struct {
	commit.Ticket
	backend *Backend
	now     time.Time
	expired []*expiry.Expiring
	changes []change
}

func (w *expiring) Log() commit.Log { return w.backend.commitLog() }
func (w *expiring) Size() int       { return journal.MaxOverhead }

func (w *expiring) Read() {
	if b := w.backend; !b.closed {
		w.expired = b.expiries.Expired(w.now, expiryRun)
	}
}

// Stage deletes the expired objects, except those that a write of the same group has
// changed.
func (w *expiring) Stage(batch *journal.Batch) error {
	b := w.backend
	w.changes = nil // of a try before, for which there was no space
	for _, e := range w.expired {
		last, _, next, err := b.staged(e.Object.Key, durable{object: e.Object})
		if err != nil {
			return err
		}
		if last != e.Object {
			continue
		}
		c := change{event: b.deletion(last, next, w.now), size: e.Size}
		c.bytes = b.put(batch, c.event, encoded{})
		w.changes = append(w.changes, c)
	}
	return nil
}

func (w *expiring) Publish() {
	for _, c := range w.changes {
		w.backend.apply(c)
	}
}
