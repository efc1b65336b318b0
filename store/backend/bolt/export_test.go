package bolt

import (
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/window"
)

// OpenOver is Open with something between the file and the journal.
func OpenOver(path string, opts Options, wrap func(journal.Journal) journal.Journal) (*File, error) {
	j, err := journal.Open(path, opts.journal())
	if err != nil {
		return nil, err
	}
	return newFile(path, wrap(j), opts), nil
}

// Settle waits until nothing is going on in the background.
func (f *File) Settle() { f.upkeep.done.Wait() }

// SetHotLimits bounds what is held in memory of the history, until restore is
// called.
func SetHotLimits(l window.Limits) (restore func()) {
	old := hotLimits
	hotLimits = l
	return func() { hotLimits = old }
}

// SetColdRun sets how many records are read from the file at once, for watches that begin
// before restore is called.
func SetColdRun(n int) (restore func()) { return setCold(&cold.run, n) }

// SetMaxRecentBytes bounds what a watch keeps of what it has read from the file, likewise.
func SetMaxRecentBytes(n int) (restore func()) { return setCold(&cold.recentBytes, n) }

// SetColdBytes sets how many bytes of values end a run early, likewise.
func SetColdBytes(n int) (restore func()) { return setCold(&cold.runBytes, n) }

func setCold(limit *int, n int) (restore func()) {
	old := *limit
	*limit = n
	return func() { *limit = old }
}

// ReadAhead reports whether a watch is reading nothing from the file.
func ReadAhead(w backend.Watcher) bool {
	watch := w.(*watcher)
	watch.backend.mu.Lock()
	defer watch.backend.mu.Unlock()
	return watch.cold == nil || !watch.cold.filling
}

// Queued returns how many writes wait for a transaction.
func (f *File) Queued() int { return f.queue.Len() }

// Places returns how many entries for keys New needs to read the log of b.
func (b *Backend) Places() (int, error) {
	l := newLoading(newBackend(b.file, b.name, b.config), b.clock.Now())
	bounds, err := b.Bounds()
	if err != nil {
		return 0, err
	}
	err = l.scan(bounds)
	return len(l.versions), err
}

// SetFullTrims sets how a write for which there is no space deletes history before it is tried
// again, until restore is called.
func SetFullTrims(records, trims int) (restore func()) {
	r, n := fullRecords, fullTrims
	fullRecords, fullTrims = records, trims
	return func() { fullRecords, fullTrims = r, n }
}

// StopUpkeep leaves the history that is discarded from now on in the file.
func (f *File) StopUpkeep() { f.upkeep.stop() }

// Bounds returns the bounds of b's log.
func (b *Backend) Bounds() (journal.Bounds, error) { return b.file.journal.Bounds(b.name) }

// Marks returns how many marks of b's history there is room for.
func (b *Backend) Marks() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cap(b.history.marks)
}
