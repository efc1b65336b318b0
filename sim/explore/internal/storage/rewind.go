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
// gone, others are written in their place, no object expires any more, and no late write is done. Watches end
// with err.
func (s *Storage[T]) Rewind(rev store.Revision, others []T, err error) error {
	s.Disturbed = true
	inner, failed := memory.New(s.Schema, s.memory)
	if failed != nil {
		return failed
	}
	if failed := s.replayInto(inner, rev); failed != nil {
		return failed
	}
	s.Floor()
	s.BreakWatches(err)
	old := s.Replace(inner)
	if s.Uncached != nil {
		s.Uncached.Replace(inner)
	}
	s.History, s.leases, s.late, s.Listed = s.History.Fork(rev), nil, nil, 0
	s.times = s.times[:rev-judge.First]
	for _, value := range others {
		key := s.keyOf(value)
		o, failed := s.putInto(inner, key, value)
		if failed != nil {
			return failed
		}
		s.History.Put(key, value)
		s.History.Date(o.Written, o.Expires)
	}
	s.stamp()
	return old.Close()
}

// replayInto writes the changes of the history up to rev to an empty backend.
func (s *Storage[T]) replayInto(b *memory.Backend, rev store.Revision) error {
	ctx := context.Background()
	put := func(key string, value T) error {
		_, err := s.putInto(b, key, value)
		return err
	}
	emit := func(key string, value T) error {
		_, err := b.Emit(ctx, s.newObject(key, value))
		return err
	}
	remove := func(key string) error {
		was, err := b.Get(ctx, key)
		if err == nil {
			_, err = b.Remove(ctx, was)
		}
		return err
	}
	return s.History.Replay(rev, put, emit, remove)
}

// putInto stores a value under a key in b, and returns its object.
func (s *Storage[T]) putInto(b *memory.Backend, key string, value T) (*store.Object, error) {
	ctx := context.Background()
	prev, err := b.Get(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return b.Put(ctx, s.newObject(key, value), prev, backend.PutOptions{})
}
