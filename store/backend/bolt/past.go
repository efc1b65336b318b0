package bolt

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/tree"
)

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
		return reader.fill(page, scan)
	})
	return page, err
}

// indexOf returns the index of the state at a revision, by one scan of the log.
func (b *Backend) indexOf(v journal.View, at store.Revision) (*pastIndex, error) {
	b.mu.Lock()
	index := b.indexes.use(at)
	b.mu.Unlock()
	if index != nil {
		return index, nil
	}
	records := map[string]uint64{}
	err := v.Scan(0, uint64(at), func(revision uint64, r journal.Record) (bool, error) {
		switch r.Kind {
		case journal.Put:
			records[string(r.Key)] = revision
		case journal.Delete:
			delete(records, string(r.Key))
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	index = newPastIndex(at, len(records))
	for _, key := range slices.Sorted(maps.Keys(records)) {
		index.add(key, records[key], nil)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.remember(index)
	}
	return index, nil
}

// pastReader reads objects of one past state.
type pastReader struct {
	view    journal.View
	backend *Backend
	index   *pastIndex
}

// headers returns an object for each that scan covers, in order: as the index has it, or
// with only its key, in which case fill decodes it if it is on the page. The ones after
// the page are only counted, so one object without a key stands for all of them.
func (r *pastReader) headers(scan backend.Scan) iter.Seq[*store.Object] {
	return func(yield func(*store.Object) bool) {
		var counted store.Object
		yielded := 0
		from, _ := slices.BinarySearch(r.index.keys, max(scan.Prefix, scan.After))
		for i, key := range r.index.keys[from:] {
			if !strings.HasPrefix(key, scan.Prefix) {
				return
			}
			if key <= scan.After && scan.After != "" || !store.HasPrefix(key, scan.Prefix) {
				continue
			}
			header := &counted
			if yielded++; scan.Limit == 0 || yielded <= scan.Limit {
				if header = r.index.objects[from+i]; header == nil {
					header = &store.Object{Key: key}
				}
			}
			if !yield(header) {
				return
			}
		}
	}
}

// fill replaces the headers on a page by the objects: the state's own where they have not
// changed since, the others from the file.
func (r *pastReader) fill(page *backend.List, scan backend.Scan) error {
	if !slices.ContainsFunc(page.Items, isHeader) {
		return nil
	}
	now, err := r.backend.snapshot()
	if err != nil {
		return err
	}
	newest := newestOf(now.State(), scan, page.Items)
	var records []wanted
	at := 0
	for i, header := range page.Items {
		if i == 0 {
			at, _ = slices.BinarySearch(r.index.keys, header.Key)
		}
		for r.index.keys[at] != header.Key {
			at++
		}
		revision := r.index.records[at]
		switch o := newest[i]; {
		case o != nil && uint64(o.Revision) == revision && now.undecodable.of(o) == nil:
			page.Items[i] = o
		case !isHeader(header): // the index has it
		default:
			records = append(records, wanted{revision, header.Key, i})
		}
	}
	slices.SortFunc(records, func(x, y wanted) int { return cmp.Compare(x.revision, y.revision) })
	return r.decode(page, records, newest)
}

// isHeader reports whether o has only its key.
func isHeader(o *store.Object) bool { return o.Revision == 0 }

// decode puts the objects of the records on a page, which share equal attributes with the
// newest ones.
func (r *pastReader) decode(page *backend.List, records []wanted, newest []*store.Object) error {
	var mu sync.Mutex // guards undecodable
	var undecodable []*backend.UndecodableError
	d := newDecoding(&r.backend.values, func(w wanted, o *store.Object, unknown *backend.UndecodableError) {
		store.ShareAttributes(o, newest[w.place])
		page.Items[w.place] = o
		if unknown != nil {
			mu.Lock()
			defer mu.Unlock()
			undecodable = append(undecodable, unknown)
		}
	})
	read := func(fn func(journal.View) error) error { return fn(r.view) }
	if err := d.decodeRecords(read, records, nil); err != nil {
		return err
	}
	return joined(undecodable)
}

// newestOf returns the object in the state, or nil, for each header on a page.
func newestOf(state *tree.View, scan backend.Scan, headers []*store.Object) []*store.Object {
	newest := make([]*store.Object, len(headers))
	i := 0
	for o := range state.All(scan.Prefix, scan.After) {
		for i < len(headers) && headers[i].Key < o.Key {
			i++
		}
		if i == len(headers) {
			break
		}
		if headers[i].Key == o.Key {
			newest[i] = o
		}
	}
	return newest
}

// joined returns the first of the errors, by key, as one.
func joined(undecodable []*backend.UndecodableError) error {
	slices.SortFunc(undecodable, func(x, y *backend.UndecodableError) int { return cmp.Compare(x.Key, y.Key) })
	var all []error
	for _, unknown := range undecodable[:min(len(undecodable), maxUndecodable)] {
		all = append(all, unknown)
	}
	return errors.Join(all...)
}
