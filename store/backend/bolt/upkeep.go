package bolt

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/usercode"
)

// upkeep discards old history and deletes its records, in a goroutine that runs only
// while there is something to do.
type upkeep struct {
	file *File

	mu      sync.Mutex
	running bool
	again   bool // start was called since run last checked for work
	stopped bool
	done    sync.WaitGroup
}

// start makes it check for work. There is none in a file that is open for reading.
func (u *upkeep) start() {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.stopped, u.file.opts.ReadOnly:
	case u.running:
		u.again = true
	default:
		u.running = true
		u.done.Go(u.run)
	}
}

// stop makes it end after what it is doing.
func (u *upkeep) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stopped = true
}

// run does what there is to do, and goes on in another goroutine if there is more by then: user code, such as the Notify of
// a watch or the clock, may end this one.
func (u *upkeep) run() {
	defer func() {
		if u.goOn() {
			u.done.Go(u.run)
		}
	}()
	usercode.Each(u.file.backends(), u.tidy)
}

func (u *upkeep) tidy(b *Backend) {
	if err := b.tidy(u.isStopped); err != nil && !errors.Is(err, store.ErrClosed) {
		b.retryTidy(err)
	}
}

// tidyRetry is how long to wait before history that could not be deleted is tried again.
const tidyRetry = time.Minute

// retryTidy reports why history could not be discarded or deleted, and schedules another attempt
// if that may help.
func (b *Backend) retryTidy(err error) {
	b.file.failed(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && backend.Retryable(err) {
		b.trim.SetIn(tidyRetry)
	}
}

func (u *upkeep) isStopped() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stopped
}

func (u *upkeep) isRunning() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.running
}

// goOn reports whether there is new work; if not, run ends.
func (u *upkeep) goOn() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	more := u.again && !u.stopped
	u.again = false
	u.running = more
	return more
}

// tidy raises the floor if there is too much history, and trims to it.
func (b *Backend) tidy(stopped func() bool) error {
	if err := b.begin(); err != nil {
		return err
	}
	defer b.end()
	now, err := expiry.Now(b.clock)
	if err != nil {
		return err
	}
	b.mu.Lock()
	if b.closed || !b.loaded {
		b.mu.Unlock()
		return nil
	}
	target := store.Revision(b.history.surplus(uint64(b.oldest()), uint64(b.revision), now, b.history.eager))
	b.history.eager = false
	b.mu.Unlock()
	if err := b.raiseFloor(context.Background(), target); err != nil {
		return err
	}
	return b.trimToFloor(stopped)
}

// trimToFloor deletes the records of discarded history.
func (b *Backend) trimToFloor(stopped func() bool) error {
	d := deleting{backend: b}
	for more := true; more && !stopped(); {
		t, err := d.trim()
		if err != nil {
			return err
		}
		more = t.More
	}
	return nil
}

// deleting deletes records of discarded history in several transactions. Deleting takes space, too, for the pages that
// it changes, of which each record may be on another: if there is too little, it deletes fewer at once, down to one.
type deleting struct {
	backend *Backend
	// records is how many the next transaction deletes; zero for the journal's default.
	records int
}

func (d *deleting) trim() (journal.Trimmed, error) {
	for {
		t, err := d.backend.file.journal.Trim(d.backend.name, journal.Budget{Records: d.records})
		switch {
		case !errors.Is(err, backend.ErrFull) || d.records == 1:
			d.records = min(2*d.records, fullRecords) // there is more space by now
			return t, err
		case d.records == 0:
			d.records = fullRecords
		default:
			d.records /= 2
		}
	}
}

// trimByAge discards history that is old enough, when the alarm rings, so that history
// does not stay when there are no more writes. It also has what could not be deleted tried again.
func (b *Backend) trimByAge() {
	surplus, err := b.forgetOld()
	if err != nil {
		b.file.failed(err)
	}
	bounds, _ := b.file.journal.Bounds(b.name) // of a log that was declared
	if surplus || bounds.Trimmed < bounds.Floor {
		b.file.upkeep.start()
	}
}

// forgetOld drops old history from memory, and reports whether there is some in the file. It
// sets the alarm again if there is history left that will go, not before what is in memory can
// be old. If the clock fails it leaves that to the next write.
func (b *Backend) forgetOld() (surplus bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false, nil
	}
	b.trim.Rang()
	now, err := expiry.Now(b.clock)
	if err != nil {
		return false, err
	}
	if b.window.Trim(now) > 0 {
		b.latest.Store(nil)
	}
	oldest, last := uint64(b.oldest()), uint64(b.revision)
	surplus = b.history.surplus(oldest, last, now, true) > oldest
	b.history.eager = surplus
	if b.window.View().Len() > 0 || b.history.ages(oldest, last) {
		b.trim.Set(now.Add(max(b.config.Retain.MinAge, hotLimits.MinAge)))
	}
	return surplus, nil
}

// Compact discards the history before rev. It returns when that is durable; the space is
// free some time later.
//
// Errors: [*store.FutureError] if rev has not happened, [*FullError], [*FailedError],
// [*ReadOnlyError], [store.ErrClosed], ctx's cause.
func (b *Backend) Compact(ctx context.Context, rev store.Revision) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.mu.Lock()
	err, current := b.closedError(), b.revision
	b.mu.Unlock()
	switch {
	case err != nil:
		return err
	case rev > current:
		return &store.FutureError{Requested: rev, Current: current}
	}
	if err := b.raiseFloor(ctx, rev); err != nil {
		return err
	}
	b.file.upkeep.start()
	return nil
}

// raiseFloor makes rev the oldest revision, unless that is newer already.
func (b *Backend) raiseFloor(ctx context.Context, rev store.Revision) error {
	b.mu.Lock()
	needed := !b.closed && rev > b.oldest()
	b.mu.Unlock()
	if !needed {
		return nil
	}
	return b.do(ctx, &raising{backend: b, to: rev})
}

// Compacted returns the oldest revision that can be read and watched from; zero if
// nothing was discarded. Errors: [store.ErrClosed], ctx's cause.
func (b *Backend) Compacted(ctx context.Context) (store.Revision, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.floor, b.closedError()
}

// raising raises the floor of one log.
type raising struct {
	commit.Ticket
	backend *Backend
	to      store.Revision
}

func (w *raising) Log() commit.Log { return w.backend.commitLog() }
func (w *raising) Size() int       { return journal.MaxOverhead }
func (w *raising) Read()           {}

func (w *raising) Stage(batch *journal.Batch) error {
	batch.Floors = append(batch.Floors, journal.Floor{Log: w.backend.name, Revision: uint64(w.to)})
	return nil
}

func (w *raising) Publish() { w.backend.discardBefore(w.to) }

// discardBefore marks history before rev as discarded. The caller holds the lock.
func (b *Backend) discardBefore(rev store.Revision) {
	if rev <= b.floor {
		return
	}
	b.floor = rev
	b.window.Compact(rev)
	b.history.drop(uint64(rev))
	b.latest.Store(nil)
}

// makeSpace discards all history that need not be kept, when there is no space for a
// write, and deletes some of its records. It reports whether there may be more space now. The
// goroutine that commits calls it, while all writes wait: what is left, upkeep deletes.
func (f *File) makeSpace() bool {
	freed := false
	for _, b := range f.backends() {
		deleted, err := b.discardSpare()
		if err != nil && !errors.Is(err, backend.ErrFull) && !errors.Is(err, store.ErrClosed) {
			f.failed(err)
		}
		freed = freed || deleted
	}
	return freed
}

// fullRecords is how many records of history a trim deletes at first while there is no space.
var fullRecords = 256

// fullTrims is how many of such trims, of two syncs each, a write waits for before it is tried
// again.
var fullTrims = 16

// discardSpare discards the history beyond MinEvents, and begins to delete its records. It reports
// whether some were deleted since there was no space last, even by upkeep.
func (b *Backend) discardSpare() (deleted bool, err error) {
	b.mu.Lock()
	if b.closed {
		defer b.mu.Unlock()
		return false, store.ErrClosed
	}
	if !b.loaded {
		defer b.mu.Unlock()
		return false, nil // New is still reading the log, or has not made it
	}
	to := b.history.spare(uint64(b.oldest()), uint64(b.revision))
	raise := to > uint64(b.oldest())
	b.mu.Unlock()
	if raise {
		if err := b.file.journal.Append(journal.Batch{Floors: []journal.Floor{{Log: b.name, Revision: to}}}); err != nil {
			return false, err
		}
		b.mu.Lock()
		if !b.closed {
			b.discardBefore(store.Revision(to))
		}
		b.mu.Unlock()
	}
	t, err := b.trimSome()
	if t.More && err == nil {
		b.file.upkeep.start()
	}
	deleted = t.Through > b.stage.trimmed
	b.stage.trimmed = max(b.stage.trimmed, t.Through)
	return deleted, err
}

// trimSome trims while there is no space, fullTrims times at most.
func (b *Backend) trimSome() (last journal.Trimmed, err error) {
	d := deleting{backend: b, records: fullRecords}
	for more, n := true, 0; more && n < fullTrims; n++ {
		t, err := d.trim()
		if err != nil {
			return last, err
		}
		last, more = t, t.More
	}
	return last, nil
}
