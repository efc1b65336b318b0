package bolt

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// pastIndex has the records that make up the state at a revision.
type pastIndex struct {
	revision store.Revision
	keys     []string // in order
	records  map[string]uint64
}

// indexLife is how long an index is kept for the pages to come.
const indexLife = time.Minute

// listPast reads a page of a state that is only in the file.
func (b *Backend) listPast(ctx context.Context, scan backend.Scan) (*backend.List, error) {
	if err := b.begin(); err != nil {
		return nil, err
	}
	defer b.end()
	var page *backend.List
	err := b.file.journal.Read(ctx, b.name, func(v journal.View) error {
		if oldest := v.Bounds().Oldest(); uint64(scan.Revision) < oldest {
			return scan.Check(store.Revision(oldest), store.Revision(v.Bounds().Last))
		}
		index, err := b.indexOf(v, scan.Revision)
		if err != nil {
			return err
		}
		reader := &pastReader{view: v, backend: b, index: index}
		page = backend.Page(scan, scan.Revision, reader.headers(scan))
		return reader.fill(page)
	})
	return page, err
}

// indexOf returns the index of the state at a revision, by one scan of the log.
func (b *Backend) indexOf(v journal.View, at store.Revision) (*pastIndex, error) {
	b.mu.Lock()
	index := b.index
	b.mu.Unlock()
	if index != nil && index.revision == at && v.Bounds().Trimmed <= uint64(at) {
		return index, nil
	}
	index = &pastIndex{revision: at, records: map[string]uint64{}}
	err := v.Scan(0, uint64(at), func(revision uint64, r journal.Record) (bool, error) {
		switch r.Kind {
		case journal.Put:
			index.records[string(r.Key)] = revision
		case journal.Delete:
			delete(index.records, string(r.Key))
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	index.keys = slices.Sorted(maps.Keys(index.records))
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.index = index
		b.forget.Set(b.clock.Now().Add(indexLife))
	}
	return index, nil
}

// forgetIndex releases the index when the alarm rings.
func (b *Backend) forgetIndex() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.forget.Rang()
		b.index = nil
	}
}

// pastReader reads objects of one past state.
type pastReader struct {
	view    journal.View
	backend *Backend
	index   *pastIndex
}

// headers returns an object with only its key for each that scan covers, in order, so
// that only those on the page are decoded. Those behind the page are only counted: one
// object without a key stands for all of them.
func (r *pastReader) headers(scan backend.Scan) iter.Seq[*store.Object] {
	return func(yield func(*store.Object) bool) {
		var behind store.Object
		yielded := 0
		from, _ := slices.BinarySearch(r.index.keys, max(scan.Prefix, scan.After))
		for _, key := range r.index.keys[from:] {
			if !strings.HasPrefix(key, scan.Prefix) {
				return
			}
			if key <= scan.After && scan.After != "" || !store.HasPrefix(key, scan.Prefix) {
				continue
			}
			header := &behind
			if yielded++; scan.Limit == 0 || yielded <= scan.Limit {
				header = &store.Object{Key: key}
			}
			if !yield(header) {
				return
			}
		}
	}
}

// fill replaces the headers on a page by the objects.
func (r *pastReader) fill(page *backend.List) error {
	now, err := r.backend.snapshot()
	if err != nil {
		return err
	}
	var undecodable []error
	for i, header := range page.Items {
		revision := r.index.records[header.Key]
		if o := now.State.Get(header.Key); o != nil && uint64(o.Revision) == revision && now.undecodable[o.Key] == nil {
			page.Items[i] = o
			continue
		}
		o, unknown, err := r.backend.readObject(r.view, revision)
		if err != nil {
			return err
		}
		if unknown != nil && len(undecodable) < maxUndecodable {
			undecodable = append(undecodable, unknown)
		}
		page.Items[i] = o
	}
	return errors.Join(undecodable...)
}

// readObject reads and decodes the record of a revision, which must be there.
func (b *Backend) readObject(v journal.View, revision uint64) (*store.Object, *backend.UndecodableError, error) {
	r, found, err := v.Get(revision)
	if err == nil && !found {
		err = b.corrupt(revision, "the record is missing")
	}
	if err != nil {
		return nil, nil, err
	}
	o, unknown := b.values.decode(keep(revision, r))
	return o, unknown, nil
}
