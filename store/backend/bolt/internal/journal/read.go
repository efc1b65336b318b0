package journal

import (
	"bytes"
	"context"
	"iter"

	"go.etcd.io/bbolt"
)

// Read calls fn with a view of a log, in a read transaction.
func (f *File) Read(ctx context.Context, name string, fn func(View) error) error {
	if _, err := f.log(name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return f.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(logBucket + name))
		h, err := parseHead(tx.Bucket([]byte(mainBucket)).Get([]byte(headKey + name)))
		if err != nil {
			return &CorruptError{Path: f.path, Page: NoPage, Log: name, What: err.Error()}
		}
		return fn(&view{file: f, ctx: ctx, log: name, bucket: b, bounds: log{head: h, last: b.Sequence()}.bounds(), base: int(h.base.count)})
	})
}

// view is a log in a transaction.
type view struct {
	file   *File
	ctx    context.Context
	log    string
	bucket *bbolt.Bucket
	bounds Bounds
	base   int
}

func (v *view) Bounds() Bounds { return v.bounds }
func (v *view) Base() int      { return v.base }

// scanRun is how many records are read between two checks of the context.
const scanRun = 256

// Scan calls fn with a run of records.
func (v *view) Scan(after, through uint64, fn func(uint64, Record) (bool, error)) error {
	if after == 1<<64-1 {
		return nil
	}
	c := v.bucket.Cursor()
	n := 0
	for key, data := c.Seek(revisionKey(after + 1)); key != nil; key, data = c.Next() {
		if n++; n%scanRun == 0 && v.ctx.Err() != nil {
			return context.Cause(v.ctx)
		}
		revision := revisionOf(key)
		if revision > through {
			return nil
		}
		r, err := v.parse(revision, data)
		if err != nil {
			return err
		}
		if more, err := fn(revision, r); err != nil || !more {
			return err
		}
	}
	return nil
}

// Pick calls fn with the records of the revisions, which it finds with one cursor.
func (v *view) Pick(revisions iter.Seq[uint64], fn func(uint64, Record) error) error {
	at := &picking{cursor: v.bucket.Cursor()}
	n := 0
	for revision := range revisions {
		if n++; n%scanRun == 0 && v.ctx.Err() != nil {
			return context.Cause(v.ctx)
		}
		if !at.advance(revisionKey(revision)) {
			return &CorruptError{Path: v.file.path, Page: NoPage, Log: v.log, Revision: revision, What: "the record is missing"}
		}
		r, err := v.parse(revision, at.data)
		if err != nil {
			return err
		}
		if err := fn(revision, r); err != nil {
			return err
		}
	}
	return nil
}

// picking is a position in a log. Its cursor is at key, nil at first and at the end.
type picking struct {
	cursor    *bbolt.Cursor
	key, data []byte
}

// maxSteps is how many records picking steps over before it searches from the root: if
// the next record is near, stepping is faster.
const maxSteps = 16

// advance moves to the record under key, and reports whether there is one.
func (p *picking) advance(key []byte) bool {
	for range maxSteps {
		if p.key == nil || bytes.Compare(p.key, key) >= 0 {
			break
		}
		p.key, p.data = p.cursor.Next()
	}
	if p.key == nil || bytes.Compare(p.key, key) < 0 {
		p.key, p.data = p.cursor.Seek(key)
	}
	return bytes.Equal(p.key, key)
}

// Get returns one record.
func (v *view) Get(revision uint64) (Record, bool, error) {
	data := v.bucket.Get(revisionKey(revision))
	if data == nil {
		return Record{}, false, nil
	}
	r, err := v.parse(revision, data)
	return r, err == nil, err
}

func (v *view) parse(revision uint64, data []byte) (Record, error) {
	r, err := ParseRecord(revision, data)
	if err != nil {
		return Record{}, &CorruptError{Path: v.file.path, Page: NoPage, Log: v.log, Revision: revision, What: err.Error()}
	}
	return r, nil
}

var _ View = (*view)(nil)
