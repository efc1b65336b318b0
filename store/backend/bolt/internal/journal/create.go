package journal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/watchmill/watchmill/internal/directory"
)

// create makes an empty file at path, unless another process makes one first.
func create(path string, timeout time.Duration) error {
	id := Identity{Format: Format, Created: now()}
	_, _ = rand.Read(id.ID[:]) // never fails: it would end the program instead
	p := placement{path: path, timeout: timeout}
	return p.place(func(db *bbolt.DB) error {
		return db.Update(func(tx *bbolt.Tx) error { return initialize(tx, id) })
	})
}

// initialize makes an empty file a journal without logs.
func initialize(tx *bbolt.Tx, id Identity) error {
	b, err := tx.CreateBucket([]byte(mainBucket))
	if err != nil {
		return err
	}
	return b.Put([]byte(fileKey), id.encode())
}

// placement makes a file beside its path, and renames it when it is complete and durable.
// So a crash leaves either what was at the path before, or the complete new file.
type placement struct {
	path string
	// task is what errors say that cannot be done to path; "" means "make".
	task    string
	timeout time.Duration
	// over: the new file replaces the one at path, which the caller has locked. Without
	// it, an existing file is left alone.
	over bool
	// before fills the file, before bbolt is opened on it; nil leaves it empty.
	before func(file *os.File) error

	file    *os.File
	release func()
	db      *bbolt.DB
}

// place makes the file with the contents that write gives it, and closes it.
func (p *placement) place(write func(*bbolt.DB) error) (err error) {
	if err := p.begin(); err != nil || p.file == nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }() // even if a reader of the user's ends the goroutine
	return p.finish(write)
}

// begin opens, locks and empties the file beside path. The field file stays nil if there
// is nothing to do, because path names a file.
func (p *placement) begin() error {
	file, err := os.OpenFile(unfinished(p.path), os.O_RDWR|os.O_CREATE, 0o600)
	if err = p.full(err); errors.Is(err, ErrFull) {
		return p.failed(err)
	}
	if err != nil {
		return fmt.Errorf("cannot make %s: is its directory there, and writable? %w", p.path, err)
	}
	release, err := lock(file, p.path, false, p.timeout)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	p.file, p.release = file, release
	f := &File{path: unfinished(p.path), file: file}
	mine, err := f.isAtPath() // false if it was renamed while this waited for the lock
	if mine && !p.over {
		mine, err = isFree(p.path)
	}
	if mine {
		err = file.Truncate(0)
	}
	if !mine || err != nil {
		err = errors.Join(err, p.close())
		p.file = nil
	}
	return err
}

// isFree reports whether there is no file at path. If there is one, it removes the file
// beside it, which the caller has locked, unless that is gone: the process that has opened
// the one at path removes it, too.
func isFree(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, errors.Join(err, removeLeftover(path))
}

var errTaken = fmt.Errorf("%w: move it away first", fs.ErrExist)

// finish fills the file, syncs it, and renames it to path.
func (p *placement) finish(write func(*bbolt.DB) error) error {
	_, err := contained(p.path, func() (err error) {
		if p.before != nil {
			if err := p.before(p.file); err != nil {
				return err
			}
		}
		p.db, err = bbolt.Open(unfinished(p.path), 0, &bbolt.Options{
			Timeout:         DefaultLockTimeout,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: mappable(p.file, reserve),
			OpenFile:        func(string, int, os.FileMode) (*os.File, error) { return p.file, nil },
		})
		if err != nil {
			return err
		}
		p.db.AllocSize = minAllocSize
		return write(p.db)
	})
	if err == nil {
		err = p.file.Sync()
	}
	if err == nil && !p.over {
		var free bool
		if free, err = isFree(p.path); err == nil && !free {
			err = errTaken // by another program, whose file would be gone
		}
	}
	if err == nil {
		err = os.Rename(unfinished(p.path), p.path)
	}
	if err != nil {
		return errors.Join(p.failed(p.full(err)), removeLeftover(p.path))
	}
	if err := directory.Sync(filepath.Dir(p.path)); err != nil {
		return errors.Join(p.failed(err), p.takeBack())
	}
	return nil
}

// takeBack removes the file from its path, unless it has replaced another.
func (p *placement) takeBack() error {
	if p.over {
		return nil
	}
	return os.Remove(p.path)
}

// failed returns the error for a file that was not made. It leaves out what a [FailedError]
// says to do about a file that is open: this one is removed.
func (p *placement) failed(cause error) error {
	var failed *FailedError
	if errors.As(cause, &failed) {
		cause = failed.Cause
	}
	return fmt.Errorf("cannot %s %s: %w", cmp.Or(p.task, "make"), p.path, cause)
}

// full returns err, as a [*FullError] if it is about a lack of space. Nothing is left of the
// file then, whichever call that was.
func (p *placement) full(err error) error {
	if err == nil || errors.Is(err, ErrFull) {
		return err
	}
	cause := noSpace(err)
	if cause == nil && slices.ContainsFunc(spaceErrnos, func(errno syscall.Errno) bool { return errors.Is(err, errno) }) {
		cause = err
	}
	if cause == nil {
		return err
	}
	return &FullError{Path: p.path, Cause: cause}
}

func (p *placement) close() error {
	defer p.release()
	var err error
	if p.db != nil {
		_, err = contained(p.path, p.db.Close)
	}
	if closing := p.file.Close(); !errors.Is(closing, os.ErrClosed) {
		err = errors.Join(err, closing)
	}
	return err
}
