package bolt_test

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// sabotage is a defect between the backend and its file, or of what the backend shows.
type sabotage struct {
	name string
	// file is the journal with the defect, backend the backend; nil leaves them as they are.
	file    func(journal.Journal) journal.Journal
	backend func(*bolt.Backend) *spoilt
}

func (s sabotage) over(j journal.Journal) journal.Journal {
	if s.file == nil {
		return j
	}
	return s.file(j)
}

func (s sabotage) show(b *bolt.Backend) interface {
	backend.Backend
	backend.Emitter
} {
	if s.backend == nil {
		return b
	}
	return s.backend(b)
}

var sabotages = []sabotage{
	{name: "a write is acknowledged that is not in the file", file: onAppend(func(j journal.Journal, b journal.Batch) error { return nil })},
	{name: "a compaction is not in the file", file: onAppend(func(j journal.Journal, b journal.Batch) error {
		b.Floors = nil
		return j.Append(b)
	})},
	{name: "a compaction raises the floor of the file by one too many", file: onAppend(func(j journal.Journal, b journal.Batch) error {
		for i := range b.Floors {
			if bounds, _ := j.Bounds(b.Floors[i].Log); b.Floors[i].Revision < bounds.Last {
				b.Floors[i].Revision++
			}
		}
		return j.Append(b)
	})},
	{name: "a write for which there is no space is in the file", file: onAppend(func(j journal.Journal, b journal.Batch) error {
		err := j.Append(b)
		if errors.Is(err, backend.ErrFull) {
			_ = j.Append(b)
		}
		return err
	})},
	{name: "a write whose outcome is unknown is said to have failed", file: onAppend(func(j journal.Journal, b journal.Batch) error {
		err := j.Append(b)
		if failed := (*bolt.FailedError)(nil); errors.As(err, &failed) {
			return &bolt.FailedError{Path: failed.Path, Cause: failed.Cause}
		}
		return err
	})},
	{name: "a scan leaves out a record", file: onScan(func(v journal.View, after, through uint64, fn scanned) error {
		return v.Scan(after, through, func(revision uint64, r journal.Record) (bool, error) {
			if after > 0 && revision%5 == 0 {
				return true, nil
			}
			return fn(revision, r)
		})
	})},
	{name: "a scan begins one record late", file: onScan(func(v journal.View, after, through uint64, fn scanned) error {
		if after > 0 {
			after++
		}
		return v.Scan(after, through, fn)
	})},
	{name: "a scan does not end", file: onScan(func(v journal.View, after, through uint64, fn scanned) error {
		return v.Scan(after, v.Bounds().Last, fn)
	})},
	{name: "a record of the file is taken for another", file: onScan(func(v journal.View, after, through uint64, fn scanned) error {
		return v.Scan(after, through, func(revision uint64, r journal.Record) (bool, error) {
			if before, found, _ := v.Get(r.Prev); found && after > 0 && before.Kind == r.Kind {
				r.Value = before.Value
			}
			return fn(revision, r)
		})
	})},
	{name: "a past state is a later one", backend: onList(func(b *bolt.Backend, opts backend.ListOptions) (*backend.List, error) {
		if l, err := b.List(context.Background(), backend.ListOptions{Prefix: opts.Prefix, Revision: opts.Revision + 1, Limit: opts.Limit}); err == nil && opts.Revision != 0 {
			l.Revision--
			return l, nil
		}
		return b.List(context.Background(), opts)
	})},
	{name: "the pages of a list are of several states", backend: onList(func(b *bolt.Backend, opts backend.ListOptions) (*backend.List, error) {
		token, err := backend.ParseToken(opts.Continue)
		if err != nil {
			return b.List(context.Background(), opts)
		}
		opts.Continue = backend.Token{Start: token.Start}.Encode()
		l, err := b.List(context.Background(), opts)
		if err == nil {
			l.Revision = token.Revision
		}
		return l, err
	})},
	{name: "a list that has expired is continued in the newest state", backend: onList(func(b *bolt.Backend, opts backend.ListOptions) (*backend.List, error) {
		l, err := b.List(context.Background(), opts)
		if expired := (*backend.ExpiredContinueError)(nil); errors.As(err, &expired) {
			return b.List(context.Background(), backend.ListOptions{Prefix: opts.Prefix, Limit: opts.Limit, Continue: expired.Continue})
		}
		return l, err
	})},
	{name: "a watch that begins too early begins at the oldest revision", backend: onWatch(func(b *bolt.Backend, opts backend.WatchOptions) (backend.Watcher, error) {
		w, err := b.Watch(context.Background(), opts)
		if expired := (*store.ExpiredError)(nil); errors.As(err, &expired) {
			opts.From = expired.Oldest
			return b.Watch(context.Background(), opts)
		}
		return w, err
	})},
	{name: "a watch loses an event of a batch", backend: onNext(func(w backend.Watcher, limit int) (backend.Batch, error) {
		batch, err := w.Next(limit)
		if n := len(batch.Events); n > 3 {
			batch.Events = batch.Events[:n-1]
		}
		return batch, err
	})},
	{name: "a watch that is overtaken is silent", backend: onNext(func(w backend.Watcher, limit int) (backend.Batch, error) {
		batch, err := w.Next(limit)
		if errors.Is(err, store.ErrExpired) {
			err = nil
		}
		return batch, err
	})},
}

// onAppend makes journals whose writes have a defect.
func onAppend(spoil func(journal.Journal, journal.Batch) error) func(journal.Journal) journal.Journal {
	return func(j journal.Journal) journal.Journal { return spoiltFile{Journal: j, append: spoil} }
}

// scanned is the function that a scan calls.
type scanned func(revision uint64, r journal.Record) (bool, error)

// onScan makes journals whose scans have a defect.
func onScan(spoil func(v journal.View, after, through uint64, fn scanned) error) func(journal.Journal) journal.Journal {
	return func(j journal.Journal) journal.Journal { return spoiltFile{Journal: j, scan: spoil} }
}

// spoiltFile is a journal with defects where its functions are not nil.
type spoiltFile struct {
	journal.Journal
	append func(journal.Journal, journal.Batch) error
	scan   func(v journal.View, after, through uint64, fn scanned) error
}

func (f spoiltFile) Append(b journal.Batch) error {
	if f.append == nil {
		return f.Journal.Append(b)
	}
	return f.append(f.Journal, b)
}

func (f spoiltFile) Read(ctx context.Context, name string, fn func(journal.View) error) error {
	return f.Journal.Read(ctx, name, func(v journal.View) error {
		if f.scan == nil {
			return fn(v)
		}
		return fn(spoiltView{v, f.scan})
	})
}

type spoiltView struct {
	journal.View
	scan func(v journal.View, after, through uint64, fn scanned) error
}

func (v spoiltView) Scan(after, through uint64, fn func(uint64, journal.Record) (bool, error)) error {
	return v.scan(v.View, after, through, fn)
}

// spoilt is a backend with defects where its functions are not nil.
type spoilt struct {
	*bolt.Backend
	list  func(*bolt.Backend, backend.ListOptions) (*backend.List, error)
	watch func(*bolt.Backend, backend.WatchOptions) (backend.Watcher, error)
}

func onList(spoil func(*bolt.Backend, backend.ListOptions) (*backend.List, error)) func(*bolt.Backend) *spoilt {
	return func(b *bolt.Backend) *spoilt { return &spoilt{Backend: b, list: spoil} }
}

func onWatch(spoil func(*bolt.Backend, backend.WatchOptions) (backend.Watcher, error)) func(*bolt.Backend) *spoilt {
	return func(b *bolt.Backend) *spoilt { return &spoilt{Backend: b, watch: spoil} }
}

func onNext(spoil func(w backend.Watcher, limit int) (backend.Batch, error)) func(*bolt.Backend) *spoilt {
	return onWatch(func(b *bolt.Backend, opts backend.WatchOptions) (backend.Watcher, error) {
		w, err := b.Watch(context.Background(), opts)
		if err != nil {
			return nil, err
		}
		return spoiltWatch{w, spoil}, nil
	})
}

func (s *spoilt) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if s.list == nil {
		return s.Backend.List(ctx, opts)
	}
	return s.list(s.Backend, opts)
}

func (s *spoilt) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	if s.watch == nil {
		return s.Backend.Watch(ctx, opts)
	}
	return s.watch(s.Backend, opts)
}

type spoiltWatch struct {
	backend.Watcher
	next func(w backend.Watcher, limit int) (backend.Batch, error)
}

func (w spoiltWatch) Next(limit int) (backend.Batch, error) { return w.next(w.Watcher, limit) }
