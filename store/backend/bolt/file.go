package bolt

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/internal/apart"
	"github.com/watchmill/watchmill/usercode"
)

// File is an open file. All methods are safe for concurrent use.
type File struct {
	path    string
	journal *failureRecorder
	queue   *commit.Queue
	opts    Options

	upkeep upkeep

	mu        sync.Mutex // guards all below
	types     map[string]*Backend
	closed    bool
	lastError error
}

// Open opens the file at path, and creates it if there is none. It reads and checks the
// whole file.
//
// Errors: [*LockedError], [*CorruptError], [*FormatError], [*FullError] for a new file,
// those of the operating system, [*UnsupportedError], and [*usercode.ConfigError]. After an
// error the file is unchanged.
func Open(path string, opts Options) (*File, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	j, err := journal.Open(path, opts.journal())
	if err != nil {
		return nil, err
	}
	return newFile(path, j, opts), nil
}

// newFile returns the file of a journal, and passes on what happened when that was opened.
func newFile(path string, j journal.Journal, opts Options) *File {
	f := &File{path: path, journal: &failureRecorder{Journal: j}, opts: opts.withDefaults(), types: map[string]*Backend{}}
	f.journal.onFailure = f.failed
	f.queue = commit.NewQueue(f.journal, f.makeSpace)
	f.upkeep.file = f
	u, err := j.Usage()
	if err != nil {
		return f // calls of the journal return the error
	}
	for _, repair := range u.Repairs {
		f.failed(errors.New(repair))
	}
	if u.Unshrunk != nil {
		f.failed(u.Unshrunk)
	}
	return f
}

// failed records an error of the background work. It contains a panic of OnError, which
// would end the program, and a runtime.Goexit, which would end the goroutine that commits
// the writes of others, or that discards history.
func (f *File) failed(err error) {
	f.record(err)
	if f.opts.OnError == nil {
		return
	}
	if panicked := apart.Call("Options.OnError", func() { f.opts.OnError(err) }); panicked != nil {
		f.record(errors.Join(err, panicked))
	}
}

// record makes err the last error.
func (f *File) record(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastError = err
}

// backends returns those that are open, by name.
func (f *File) backends() []*Backend {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*Backend, 0, len(f.types))
	for _, b := range f.types {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *Backend) int { return cmp.Compare(a.name, b.name) })
	return all
}

// Info describes a file and its contents.
type Info struct {
	Path string
	// StoreID identifies the file. A restored file has that of its origin, and another
	// Timeline. Branch is a random number that each restore draws, so that two files restored
	// from one snapshot differ; zero in a file that was not restored.
	StoreID  string
	Timeline uint64
	Branch   uint64
	// Format is the version of the layout.
	Format uint64
	// Created is when the file was made.
	Created time.Time
	// Size is the length of the file in bytes, Free is how many of them are unused.
	Size, Free int64
	// Types are the names of what it holds, with their revisions.
	Types map[string]TypeInfo
	// Warnings are the defects that Open has found and that have no consequence.
	Warnings []string
	// Repairs say what Options.Salvage discarded at Open.
	Repairs []string
	// LastError is the last error of background work, of Salvage or of shrinking, nil if
	// none.
	LastError error
}

// TypeInfo is the revisions of one type.
type TypeInfo struct {
	// Revision is the newest. Compacted is the oldest that can be read and watched
	// from, zero if no history was discarded.
	Revision, Compacted store.Revision
}

// Info describes the file and its contents. It fails with [store.ErrClosed].
func (f *File) Info() (Info, error) {
	u, err := f.journal.Usage()
	if err != nil {
		return Info{}, err
	}
	id := f.journal.Identity()
	info := Info{
		Path: f.path, StoreID: hex.EncodeToString(id.ID[:]), Timeline: id.Timeline, Branch: id.Branch, Format: id.Format, Created: id.Created,
		Size: u.Size, Free: u.Free, Types: map[string]TypeInfo{}, Warnings: u.Warnings, Repairs: u.Repairs,
	}
	for _, name := range f.journal.Logs() {
		b, err := f.journal.Bounds(name)
		if err != nil {
			return Info{}, err
		}
		info.Types[name] = typeInfo(b)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info.LastError = f.lastError
	return info, nil
}

func typeInfo(b journal.Bounds) TypeInfo {
	return TypeInfo{Revision: store.Revision(b.Last), Compacted: store.Revision(b.Floor)}
}

// Manifest describes the contents of a snapshot.
type Manifest = journal.Manifest

// Snapshot writes a consistent copy of the file to w, for [Restore]. Writes are possible
// meanwhile. Its unused space is zeros. It fails with [ErrTimeout] after
// Options.SnapshotTimeout, with [store.ErrClosed] if the file is closed meanwhile, with
// [backend.ErrFailed] once the disk has failed, and with w's error.
func (f *File) Snapshot(ctx context.Context, w io.Writer) (Manifest, error) {
	return f.journal.Snapshot(ctx, w, f.opts.SnapshotTimeout)
}

// Close commits queued writes, for at most Options.CloseTimeout, ends all backends with
// [store.ErrClosed], and closes the file. It waits for reads of old revisions, and ends
// snapshots. A second Close does nothing.
//
// It fails with [ErrTimeout] if a commit, the discarding of history, or another write, as that of New or Rewrite,
// hangs for Options.CloseTimeout. The file is closed when that goes on.
func (f *File) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	f.mu.Unlock()

	left := make(chan struct{})
	defer close(left)
	var closing error
	err := f.queue.Close(f.opts.CloseTimeout, func() {
		defer func() { closing = f.closeJournal(left) }()
		defer f.upkeep.stop()
		usercode.Each(f.backends(), (*Backend).beginClose)
	})
	if err != nil {
		return fmt.Errorf("cannot close %s: a commit has hung for %v: %w", f.path, f.opts.CloseTimeout, err)
	}
	if errors.Is(closing, ErrTimeout) {
		return closing
	}
	f.upkeep.done.Wait()
	for _, b := range f.backends() {
		b.running.Wait()
	}
	return closing
}

// closeJournal closes the journal once the upkeep and the writes in progress have ended, or later if they hang. left is
// closed when Close has returned because of a commit, so that failing helps no caller.
func (f *File) closeJournal(left <-chan struct{}) error {
	if !f.upkeep.isRunning() && f.journal.writes.TryLock() {
		defer f.journal.writes.Unlock()
		return f.journal.Close()
	}
	quiet, closed := make(chan struct{}), make(chan error, 1)
	go func() {
		f.upkeep.done.Wait()
		f.journal.writes.Lock()
		defer f.journal.writes.Unlock()
		close(quiet)
		closed <- f.journal.Close()
	}()
	timer := time.NewTimer(f.opts.CloseTimeout)
	defer timer.Stop()
	select {
	case <-quiet:
	case <-left:
	case <-timer.C:
		what := "a write"
		if f.upkeep.isRunning() {
			what = "the discarding of history"
		}
		return fmt.Errorf("cannot close %s: %s has hung for %v: %w", f.path, what, f.opts.CloseTimeout, ErrTimeout)
	}
	return <-closed
}
