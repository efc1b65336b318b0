package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// Shrink replaces the file at path, which is not open, by a copy without free space, and
// returns the sizes of both. If a file has too little of that to be worth it, they are the
// same. After an error, and when ctx is done, the file is as it was, and nothing is beside it.
func Shrink(ctx context.Context, path string, timeout time.Duration) (before, after int64, err error) {
	if err := validatePlace(path); err != nil {
		return 0, 0, err
	}
	info, err := os.Stat(path) // open would create a missing file
	if err != nil {
		return 0, 0, err
	}
	const always = 1e-9 // the share that must be free: as good as nothing
	f, err := open(ctx, path, Options{LockTimeout: timeout, ShrinkAt: always})
	if err != nil {
		return 0, 0, err
	}
	u, err := f.Usage()
	return info.Size(), u.Size, errors.Join(err, u.Unshrunk, f.Close())
}

// shrinkRun is how many bytes are copied in one transaction.
const shrinkRun = 4 << 20

// shrink replaces the file by a copy without free space. The path is locked throughout:
// the copy is locked before it is renamed. It has the permissions of the file and, as far
// as the system lets this process give files away, its owner.
//
// A file that cannot be copied, as on a full disk, is used as it is, and f.unshrunk says
// why.
func (f *File) shrink(ctx context.Context) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	p := placement{path: f.path, task: "shrink", timeout: f.opts.LockTimeout, over: true, before: func(file *os.File) error {
		keepOwner(file, info)
		return file.Chmod(info.Mode().Perm())
	}}
	if err := p.begin(); err != nil {
		return f.leaveUnshrunk(err)
	}
	if err := p.finish(func(db *bbolt.DB) error { return f.copyTo(ctx, db) }); err != nil {
		_ = p.close()
		return f.leaveUnshrunk(err)
	}
	old, release := f.db, f.release
	f.file, f.db, f.release = p.file, p.db, p.release
	_, err = contained(f.path, old.Close)
	release()
	return err
}

// leaveUnshrunk notes why the file was not copied. It fails if the file is damaged, or the
// copy has taken its place all the same.
func (f *File) leaveUnshrunk(err error) error {
	if same, _ := f.isAtPath(); !same || errors.Is(err, ErrCorrupt) {
		return err
	}
	f.unshrunk = fmt.Errorf("%s stays as large as it is: %w", f.path, err)
	return nil
}

// copyTo copies all buckets with full pages, which bbolt.Compact leaves partly empty.
func (f *File) copyTo(ctx context.Context, db *bbolt.DB) error {
	return f.db.View(func(from *bbolt.Tx) error {
		return from.ForEach(func(name []byte, b *bbolt.Bucket) error {
			c := copying{ctx: ctx, db: db, name: name, sequence: b.Sequence()}
			if err := b.ForEach(c.add); err != nil {
				return err
			}
			return c.flush()
		})
	})
}

// copying copies one bucket, in transactions of bounded size.
type copying struct {
	ctx      context.Context
	db       *bbolt.DB
	name     []byte
	sequence uint64
	pairs    [][2][]byte
	bytes    int
}

func (c *copying) add(key, value []byte) error {
	c.pairs = append(c.pairs, [2][]byte{key, value})
	if c.bytes += len(key) + len(value); c.bytes < shrinkRun {
		return nil
	}
	return c.flush()
}

func (c *copying) flush() error {
	defer func() { c.pairs, c.bytes = c.pairs[:0], 0 }()
	if err := context.Cause(c.ctx); err != nil {
		return err
	}
	return c.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(c.name)
		if err != nil {
			return err
		}
		b.FillPercent = 1
		if err := b.SetSequence(c.sequence); err != nil {
			return err
		}
		for _, pair := range c.pairs {
			if err := b.Put(pair[0], pair[1]); err != nil {
				return err
			}
		}
		return nil
	})
}
