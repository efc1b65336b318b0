package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// Options qualifies Open. The zero value is valid.
type Options struct {
	// LockTimeout is how long to wait for another process to close the file;
	// zero means one second.
	LockTimeout time.Duration
	// MaxBytes is the largest size of the file; zero means no limit but the disk's.
	MaxBytes int64
	// ShrinkAt is the part of the file, between 0 and 1, that must be unused for
	// Open to copy it into a smaller one; zero means never.
	ShrinkAt float64
	// ReadOnly opens an existing file for reading, which any number of processes can do
	// at a time.
	ReadOnly bool
	// Salvage discards damaged records, and the history up to them, where Open would
	// fail otherwise. Usage.Repairs lists what it did.
	Salvage bool
}

// DefaultLockTimeout is Options.LockTimeout if that is zero.
const DefaultLockTimeout = time.Second

// File is a [Journal] on bbolt.
type File struct {
	path     string
	opts     Options
	file     *os.File
	release  func() // releases the lock, after file was closed
	db       *bbolt.DB
	identity Identity
	warnings []string
	repairs  []string
	unshrunk error // why the file could not be shrunk

	// broken is the error of the first call of bbolt that panicked, nil if none has.
	broken atomic.Pointer[error]

	writing sync.Mutex // held while something is written, or closed
	failed  *FailedError
	closed  bool
	largest int64 // the bytes of the largest record that there has been since the file was opened

	mu     sync.Mutex // guards logs, the bounds in them, and pinned
	logs   map[string]*log
	pinned map[*pinned]struct{} // the snapshots in progress
}

// log has the bounds of a log after the last commit.
type log struct {
	head
	last uint64
}

func (l log) bounds() Bounds {
	return Bounds{First: l.first, Floor: l.floor, Trimmed: max(l.trimmed, l.first), Last: l.last}
}

var _ Journal = (*File)(nil)

// Identity returns the file's identity.
func (f *File) Identity() Identity { return f.identity }

// Logs returns the names of the logs, sorted.
func (f *File) Logs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make([]string, 0, len(f.logs))
	for name := range f.logs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Bounds returns the bounds of a log.
func (f *File) Bounds(name string) (Bounds, error) {
	l, err := f.log(name)
	return l.bounds(), err
}

// log returns the bounds of a log.
func (f *File) log(name string) (log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.logs[name]
	if !ok {
		return log{}, fmt.Errorf("%w: %q", ErrUnknownLog, name)
	}
	return *l, nil
}

// learn takes over the logs that a commit has changed.
func (f *File) learn(changed map[string]log) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, l := range changed {
		f.logs[name] = &l
	}
}

// Usage returns how much of the file is in use, and what Open found and repaired.
func (f *File) Usage() (Usage, error) {
	u := Usage{Warnings: slices.Clone(f.warnings), Repairs: slices.Clone(f.repairs), Unshrunk: f.unshrunk}
	err := f.guard(func() error {
		info, err := f.file.Stat()
		if err != nil {
			return err
		}
		u.Size = info.Size()
		return f.db.View(func(tx *bbolt.Tx) error {
			stats := f.db.Stats()
			u.Free = u.Size - tx.Size() + int64(stats.FreePageN+stats.PendingPageN)*int64(f.db.Info().PageSize)
			return nil
		})
	})
	if errors.Is(err, os.ErrClosed) {
		err = ErrClosed
	}
	return u, err
}

// Close ends the snapshots in progress, closes the file and releases the lock.
func (f *File) Close() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	defer f.release()
	f.endSnapshots()
	if f.broken.Load() != nil {
		return errors.Join(unlock(f.file), f.file.Close()) // without bbolt, which may still hold its own locks
	}
	return f.guard(f.db.Close)
}
