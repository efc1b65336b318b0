package storage

import (
	"context"
	"math/rand/v2"

	"github.com/watchmill/watchmill/store/backend"
)

// Storage may have had changes before the engine starts. If it keeps its history, as a file does, the engine
// begins with that.

// Begin makes n changes: values are stored and, now and then, emitted or deleted. In half of the cases storage
// then discards some of that history. It must come before the engine starts, which has no part in this.
func (s *Storage[T]) Begin(n int, draw *rand.Rand, value func(*rand.Rand) T) error {
	for range n {
		v, kind := value(draw), draw.IntN(6)
		if kind == 0 {
			if _, err := s.Emit(context.Background(), s.newObject(s.keyOf(v), v)); err != nil {
				return err
			}
			continue
		}
		if err := s.change(s.keyOf(v), v, kind == 1); err != nil {
			return err
		}
	}
	s.stamp()
	if n == 0 || draw.IntN(2) == 0 {
		return nil
	}
	return s.Unwrap().Compact(context.Background(), s.Back(draw.IntN(n)))
}

// Traits are those of the backend, and whether it keeps its history.
func (s *Storage[T]) Traits() backend.Traits {
	t := s.Backend.Traits()
	t.KeepsHistory = s.keepsHistory
	return t
}
