package journal

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// shrinkRun is how many bytes are copied in one transaction.
const shrinkRun = 4 << 20

// shrink replaces the file by a copy without free space. The path is locked throughout:
// the copy is locked before it is renamed. It has the permissions of the file and, as far
// as the system lets this process give files away, its owner.
//
// A file that cannot be copied, as on a full disk, is used as it is, and f.unshrunk says
// why.
func (f *File) shrink() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	p := placement{path: f.path, task: "shrink", timeout: f.opts.LockTimeout, over: true, before: func(file *os.File) error {
		keepOwner(file, info)
		return file.Chmod(info.Mode().Perm())
	}}
	if err := p.begin(); err != nil {
		return f.stay(err)
	}
	if err := p.finish(f.copyTo); err != nil {
		_ = p.close()
		return f.stay(err)
	}
	old, release := f.db, f.release
	f.file, f.db, f.release = p.file, p.db, p.release
	_, err = contained(f.path, old.Close)
	release()
	return err
}

// stay notes why the file was not copied. It fails if the file is damaged, or the copy has
// taken its place all the same.
func (f *File) stay(err error) error {
	if same, _ := f.isAtPath(); !same || errors.Is(err, ErrCorrupt) {
		return err
	}
	f.unshrunk = fmt.Errorf("%s stays as large as it is: %w", f.path, err)
	return nil
}

// copyTo copies all buckets with full pages, which bbolt.Compact leaves partly empty.
func (f *File) copyTo(db *bbolt.DB) error {
	return f.db.View(func(from *bbolt.Tx) error {
		return from.ForEach(func(name []byte, b *bbolt.Bucket) error {
			c := copying{db: db, name: name, sequence: b.Sequence()}
			if err := b.ForEach(c.add); err != nil {
				return err
			}
			return c.flush()
		})
	})
}

// copying copies one bucket, in transactions of bounded size.
type copying struct {
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
