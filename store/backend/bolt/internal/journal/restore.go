package journal

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"go.etcd.io/bbolt"

	"github.com/watchmill/watchmill/internal/directory"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
	"github.com/watchmill/watchmill/usercode"
)

// RestoreOptions qualifies Restore. The zero value is valid.
type RestoreOptions struct {
	// Floor is a revision above which every log continues. It is of use if more than
	// 2^32 revisions were written since the snapshot.
	Floor uint64
}

// revisionGap is how many revisions a restore leaves out: more than can have been written
// since the snapshot, so that none of those comes to mean another state.
const revisionGap = 1 << 32

// Restore makes a file at path from a snapshot, on the next timeline and a branch of its own.
// Its logs continue 2^32 above the revisions of the snapshot and have no history, so that a
// revision from before the restore is too old, and never means another state. Revisions of
// another restore of the same snapshot are of another branch.
//
// It fails with [fs.ErrExist] if there is a file; with [ErrCorrupt] if the snapshot is
// damaged or incomplete, which errors name in place of a path; with [ErrFormat] if a newer
// version made it; with [ErrFull]; and with the error of ctx once that is done. Then there is
// no file afterwards.
func Restore(ctx context.Context, r io.Reader, path string, opts RestoreOptions) (Manifest, error) {
	if err := validatePlace(path); err != nil {
		return Manifest{}, err
	}
	path = directory.Followed(path)
	s := restoring{ctx: ctx, path: path, opts: opts}
	p := placement{path: path, task: "restore to", timeout: DefaultLockTimeout, before: func(file *os.File) error { return s.receive(file, r) }}
	done := false
	err := p.place(func(db *bbolt.DB) error {
		done = true
		return s.moveOn(db, p.file)
	})
	if err == nil && !done {
		err = fmt.Errorf("cannot restore to %s: %w", path, errTaken)
	}
	return s.manifest, err
}

type restoring struct {
	ctx      context.Context
	path     string
	opts     RestoreOptions
	manifest Manifest
	found    *contents
}

// theSnapshot stands in errors for a path, which a snapshot from a reader does not have.
const theSnapshot = "the snapshot"

// badSnapshot returns the error of a snapshot as a whole.
func badSnapshot(what string) error {
	return &CorruptError{Path: theSnapshot, Page: NoPage, What: what}
}

// receive writes the snapshot into the file and checks it. Data that does not begin like
// a snapshot may have no end, and is not written.
func (s *restoring) receive(file *os.File, r io.Reader) error {
	from := source{ctx: s.ctx, Reader: r}
	begin := make([]byte, pages.BeginBytes)
	n, err := io.ReadFull(&from, begin)
	if err == nil && !pages.Begins(begin) {
		return badSnapshot("it does not begin like a snapshot: give the path of one")
	}
	size := int64(n)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		size, err = io.Copy(file, io.MultiReader(bytes.NewReader(begin[:n]), &from))
	}
	if from.err != nil {
		return fmt.Errorf("%s cannot be read: %w", theSnapshot, from.err)
	}
	if err != nil {
		return err
	}
	return s.verify(file, size)
}

// verify checks the snapshot of size bytes in the file, and cuts off its footer.
func (s *restoring) verify(file *os.File, size int64) (err error) {
	if s.manifest, err = readFooter(file, size); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(readerUntil{s.ctx, file}, 0, s.manifest.Bytes)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != s.manifest.SHA256 {
		return badSnapshot("its checksum is wrong")
	}
	if err := file.Truncate(s.manifest.Bytes); err != nil {
		return err
	}
	if s.found, err = inspect(s.ctx, theSnapshot, file, s.manifest.Bytes, 1); err != nil {
		return err
	}
	if id := s.found.identity; s.manifest.ID != hex.EncodeToString(id.ID[:]) || s.manifest.Timeline != id.Timeline || s.manifest.Format != id.Format {
		return badSnapshot("its manifest is that of another file")
	}
	return s.found.firstDamage()
}

// source is a reader, until ctx is done, that keeps its error, to tell it from one of the
// writer.
type source struct {
	ctx context.Context
	io.Reader
	err error
}

func (s *source) Read(p []byte) (n int, err error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, err
	}
	if panicked := usercode.Call("Reader.Read", "", func() { n, err = s.Reader.Read(p) }); panicked != nil {
		err = panicked // otherwise it would count as damage of the file
	}
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// moveOn discards all history, raises the revisions of all logs and the timeline, and begins a
// branch.
func (s *restoring) moveOn(db *bbolt.DB, file *os.File) error {
	f := &File{path: s.path, file: file, db: db, identity: s.found.identity, logs: s.found.logs}
	for _, name := range f.Logs() {
		if err := f.flatten(s.ctx, name); err != nil {
			return err
		}
		if err := f.skip(name, s.opts.Floor); err != nil {
			return err
		}
		b, err := f.Bounds(name)
		if err != nil {
			return err
		}
		s.manifest.Revisions[name] = b.Last
	}
	if err := context.Cause(s.ctx); err != nil {
		return err
	}
	id := f.identity
	id.Timeline++
	id.Branch = newBranch()
	s.manifest.Timeline = id.Timeline
	return f.update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(mainBucket)).Put([]byte(fileKey), id.encode())
	})
}

// newBranch returns a random number that is not zero.
func newBranch() uint64 {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails: it would end the program instead
	return max(1, binary.BigEndian.Uint64(random[:]))
}

// flatten discards all history of a log.
func (f *File) flatten(ctx context.Context, name string) error {
	b, err := f.Bounds(name)
	if err != nil {
		return err
	}
	if err := f.Append(Batch{Floors: []Floor{{Log: name, Revision: b.Last}}}); err != nil {
		return err
	}
	for more := true; more; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		t, err := f.Trim(name, Budget{})
		if err != nil {
			return err
		}
		more = t.More
	}
	return nil
}

// skip raises the revision of a log that has no history by revisionGap, or above floor.
func (f *File) skip(name string, floor uint64) error {
	l, err := f.log(name)
	if err != nil {
		return err
	}
	last := max(l.last, floor)
	if last > math.MaxInt64-2*revisionGap { // continue tokens have signed numbers
		return errors.New("the revisions are used up")
	}
	last += revisionGap
	l.head = head{first: last, floor: last, trimmed: last, base: l.base}
	return f.update(func(tx *bbolt.Tx) error {
		if err := tx.Bucket([]byte(logBucket + name)).SetSequence(last); err != nil {
			return err
		}
		l.last = last
		if err := putHead(tx, name, l.head); err != nil {
			return err
		}
		f.learn(map[string]log{name: l})
		return nil
	})
}
