package storage

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Rewind takes storage back to rev, as when it is restored from a backup: later writes are
// gone, others are written in their place, and no object expires any more. Watches end
// with err.
func (s *Storage[T]) Rewind(rev store.Revision, others []T, err error) error {
	inner, failed := memory.New(s.Schema, s.memory)
	if failed != nil {
		return failed
	}
	ctx := context.Background()
	put := func(key string, value T) error {
		prev, err := inner.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		_, err = inner.Put(ctx, s.newObject(key, value), prev, backend.PutOptions{})
		return err
	}
	emit := func(key string, value T) error {
		_, err := inner.Emit(ctx, s.newObject(key, value))
		return err
	}
	remove := func(key string) error {
		was, err := inner.Get(ctx, key)
		if err == nil {
			_, err = inner.Remove(ctx, was)
		}
		return err
	}
	if failed := s.History.Replay(rev, put, emit, remove); failed != nil {
		return failed
	}
	s.Floor()
	s.BreakWatches(err)
	old := s.Replace(inner)
	if s.Uncached != nil {
		s.Uncached.Replace(inner)
	}
	s.History, s.leases, s.Listed = s.History.Fork(rev), nil, 0
	s.times = s.times[:rev-judge.First]
	for _, value := range others {
		key := s.keyOf(value)
		if failed := put(key, value); failed != nil {
			return failed
		}
		s.History.Put(key, value)
		o, failed := inner.Get(ctx, key)
		if failed != nil {
			return failed
		}
		s.History.Date(o.Written, o.Expires)
	}
	s.stamp()
	return old.Close()
}
