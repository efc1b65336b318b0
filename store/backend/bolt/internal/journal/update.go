package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
)

// update runs fn in a transaction and commits it. If fn fails, nothing is written and the
// error is returned unchanged; for a commit that fails see commitFailed. The caller holds
// f.writing.
func (f *File) update(fn func(tx *bbolt.Tx) error) error { return f.updateWith(space{}, fn) }

// space is what new records need: that many bytes, zero if there are none, of which the largest has largest.
type space struct {
	bytes, largest int64
	// deletions: all of them are deletions.
	deletions bool
}

// headroom is how many of MaxBytes new records may not use, since discarding history
// takes space, too: deleting one record writes what is beside it and beside its predecessor, up to four records
// each, however large. Deletions may use half of it, since they make space in the end.
func (f *File) headroom(s space) int64 {
	most := max(f.opts.MaxBytes/16, 16*int64(f.db.Info().PageSize), min(8*max(f.largest, s.largest), f.opts.MaxBytes/4))
	if s.deletions {
		return most / 2
	}
	return most
}

// maxSize returns how large the file may be with new records, where zero means no limit, and whether
// there is space for them. The pages that are free belong to the headroom, too: once history was discarded, the
// file has grown into it.
func (f *File) maxSize(tx *bbolt.Tx, s space) (size int64, fits bool) {
	if f.opts.MaxBytes == 0 || s.bytes == 0 {
		return f.opts.MaxBytes, true
	}
	stats := f.db.Stats()
	free := int64(stats.FreePageN+stats.PendingPageN)*int64(f.db.Info().PageSize) + max(0, f.opts.MaxBytes-tx.Size())
	headroom := f.headroom(s)
	return max(1, f.opts.MaxBytes-headroom), s.bytes <= free-headroom
}

// updateWith is update with new records.
func (f *File) updateWith(s space, fn func(tx *bbolt.Tx) error) error {
	if err := f.writable(); err != nil {
		return err
	}
	var id int
	var inside error
	err := f.guard(func() error {
		tx, err := f.db.Begin(true)
		if err != nil {
			return err
		}
		id = tx.ID()
		maxSize, fits := f.maxSize(tx, s)
		if !fits {
			inside = &FullError{Path: f.path, Cause: berrors.ErrMaxSizeReached}
			return tx.Rollback()
		}
		f.db.AllocSize, f.db.MaxSize = f.allocSize(tx.Size()), asInt(maxSize)
		if inside = fn(tx); inside != nil {
			return tx.Rollback()
		}
		return tx.Commit()
	})
	switch {
	case err != nil:
		return f.commitFailed(err, id)
	case inside != nil:
		return inside
	}
	return nil
}

// writable returns the reason if nothing can be written, else nil.
func (f *File) writable() error {
	switch {
	case f.closed:
		return ErrClosed
	case f.opts.ReadOnly:
		return &ReadOnlyError{Path: f.path}
	case f.failed != nil:
		return &FailedError{Path: f.path, Cause: f.failed.Cause}
	}
	if broken := f.broken.Load(); broken != nil {
		return &FailedError{Path: f.path, Cause: *broken}
	}
	return nil
}

// Space is added to the file in steps of an eighth of what is used, within these bounds:
// each costs an fsync.
const (
	minAllocSize = 64 << 10
	maxAllocSize = 16 << 20
)

// allocSize returns the step for a file of which that many bytes are used. It does not ask
// for the size of the file: after a fstat, Linux from 6.13 gives the next write a finer
// timestamp, and the commit waits until that is in the file system's journal.
func (f *File) allocSize(used int64) int {
	page := f.db.Info().PageSize
	size := min(max(asInt(used/8), minAllocSize), maxAllocSize)
	if f.opts.MaxBytes > 0 {
		size = min(size, max(asInt(f.opts.MaxBytes/64), page))
	}
	return size / page * page
}

// asInt returns a number of bytes as bbolt takes it. Where an int has 32 bits, no file is
// larger than the largest.
func asInt(bytes int64) int { return int(min(bytes, math.MaxInt)) }

// commitFailed returns the error of a commit that failed with err. If there was no space for
// its data pages, nothing has changed. Otherwise it ends writing, since the contents of the
// disk are unknown, and a later success would not prove anything: after a failed sync the
// system may take pages for written that are old on the disk. It still does when the file is opened
// again, unless it was made to forget them, as the documentation of package bolt says.
func (f *File) commitFailed(err error, id int) error {
	if cause := noSpace(err); cause != nil && !f.metaWritten(id) {
		return &FullError{Path: f.path, Cause: cause}
	}
	f.failed = &FailedError{Path: f.path, Uncertain: true, Cause: err}
	return f.failed
}

// spaceErrnos are those of a file that cannot grow.
var spaceErrnos = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}

// noSpace returns err, wrapping its errno, if it is of a write or a growth of the file that
// had no space; otherwise nil.
func noSpace(err error) error {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return err
	}
	var path *fs.PathError
	isWrite := errors.As(err, &path) && path.Op == "write"
	resize := strings.HasPrefix(err.Error(), "file resize error: ") // has the errno only as text
	for _, errno := range spaceErrnos {
		switch {
		case isWrite && errors.Is(err, errno):
			return err
		case resize && strings.HasSuffix(err.Error(), errno.Error()):
			return fmt.Errorf("%s%w", strings.TrimSuffix(err.Error(), errno.Error()), errno)
		}
	}
	return nil
}

// metaWritten reports whether the meta page of a transaction may have been written
// completely. A partly written one is invalid and has no effect.
func (f *File) metaWritten(id int) bool {
	info, err := f.file.Stat()
	if err != nil {
		return true
	}
	metas, err := pages.ReadMetas(f.file, info.Size())
	return err != nil || metas.Newest.Txid >= uint64(id)
}
