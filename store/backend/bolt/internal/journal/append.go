package journal

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// Declare returns the bounds of a log, and creates the log if there is none.
func (f *File) Declare(name string, first uint64) (Bounds, error) {
	if err := validateName(name); err != nil {
		return Bounds{}, err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	if l, err := f.log(name); err == nil {
		return l.bounds(), nil
	}
	l := log{head: head{first: first}, last: first}
	err := f.update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte(logBucket + name))
		if err != nil {
			return err
		}
		if err := b.SetSequence(first); err != nil {
			return err
		}
		return putHead(tx, name, l.head)
	})
	if err != nil {
		return Bounds{}, err
	}
	f.learn(map[string]log{name: l})
	return l.bounds(), nil
}

func putHead(tx *bbolt.Tx, name string, h head) error {
	return tx.Bucket([]byte(mainBucket)).Put([]byte(headKey+name), h.encode())
}

// Append writes a batch durably.
func (f *File) Append(b Batch) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.writable(); err != nil {
		return err
	}
	changed, err := f.plan(b)
	if err != nil {
		return err
	}
	needs := b.needs()
	if err := f.updateWith(needs, func(tx *bbolt.Tx) error { return b.write(tx, changed) }); err != nil {
		return err
	}
	f.largest = max(f.largest, needs.largest)
	f.learn(changed)
	return nil
}

// needs returns the space that the records of a batch need.
func (b Batch) needs() space {
	s := space{deletions: true}
	for i := range b.Entries {
		e := &b.Entries[i]
		s.bytes += int64(len(e.Data))
		s.largest = max(s.largest, int64(len(e.Data)))
		s.deletions = s.deletions && e.Deletes()
	}
	return s
}

// plan returns the logs as a batch will leave them, or an error if it does not continue
// them.
func (f *File) plan(b Batch) (map[string]log, error) {
	after := map[string]log{}
	of := func(name string) (log, error) {
		if l, ok := after[name]; ok {
			return l, nil
		}
		return f.log(name)
	}
	for _, e := range b.Entries {
		l, err := of(e.Log)
		switch {
		case err != nil:
			return nil, err
		case len(e.Data) > MaxRecord:
			return nil, &TooLargeError{Size: len(e.Data), Limit: MaxRecord}
		case e.Revision != l.last+1:
			return nil, fmt.Errorf("log %q is at revision %d: a record of revision %d cannot follow", e.Log, l.last, e.Revision)
		}
		l.last = e.Revision
		after[e.Log] = l
	}
	for _, fl := range b.Floors {
		l, err := of(fl.Log)
		switch {
		case err != nil:
			return nil, err
		case fl.Revision > l.last:
			return nil, fmt.Errorf("log %q is at revision %d: its floor cannot be raised to %d", fl.Log, l.last, fl.Revision)
		}
		l.floor = max(l.floor, fl.Revision)
		after[fl.Log] = l
	}
	return after, nil
}

// write writes the records of a batch, and the logs' new bounds.
func (b Batch) write(tx *bbolt.Tx, after map[string]log) error {
	buckets := make(map[string]*bbolt.Bucket, len(after))
	for name, l := range after {
		bucket := tx.Bucket([]byte(logBucket + name))
		bucket.FillPercent = 1 // full pages, since records are only added at the end
		if err := bucket.SetSequence(l.last); err != nil {
			return err
		}
		buckets[name] = bucket
	}
	key := revisionKey(0)
	for i := range b.Entries {
		e := &b.Entries[i]
		binary.BigEndian.PutUint64(key, e.Revision) // Put copies it
		if err := buckets[e.Log].Put(key, e.Data); err != nil {
			return err
		}
	}
	for _, fl := range b.Floors {
		if err := putHead(tx, fl.Log, after[fl.Log].head); err != nil {
			return err
		}
	}
	return nil
}

// Rewrite replaces records that are in the log.
func (f *File) Rewrite(name string, entries []Entry) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	l, err := f.log(name)
	if err != nil {
		return err
	}
	err = f.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(logBucket + name))
		b.FillPercent = 1
		for _, e := range entries {
			if err := rewrite(b, &l, e); err != nil {
				return err
			}
		}
		return putHead(tx, name, l.head)
	})
	if err != nil {
		return err
	}
	f.learn(map[string]log{name: l})
	f.largest = max(f.largest, Batch{Entries: entries}.needs().largest)
	return nil
}

func rewrite(b *bbolt.Bucket, l *log, e Entry) error {
	key := revisionKey(e.Revision)
	old := b.Get(key)
	switch {
	case old == nil:
		return nil // it was trimmed meanwhile
	case len(e.Data) > MaxRecord:
		return &TooLargeError{Size: len(e.Data), Limit: MaxRecord}
	}
	if e.Revision <= l.trimmed {
		l.base.remove(e.Revision, old)
		l.base.add(e.Revision, e.Data)
	}
	return b.Put(key, e.Data)
}

// revisionOf is the reverse of revisionKey.
func revisionOf(key []byte) uint64 { return binary.BigEndian.Uint64(key) }
