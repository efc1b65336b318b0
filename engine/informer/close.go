package informer

import (
	"context"
	"errors"
)

// Close ends the informer: its stream, and its handlers, which are told nothing
// more when they have returned. It waits until all that is gone; what was
// mirrored can still be read. Closing again waits again.
//
// Called from a handler or a function of the configuration, of this informer or
// another, it does not wait: that one would not return. A host of the informer's
// own then ends when they all have returned, however long that takes.
//
// If a handler does not return within the host's CloseTimeout, the error is a
// [*CloseError] that names it.
func (s *SharedInformer[T]) Close() error {
	s.end(ErrClosed)
	s.actor.Stop()
	if inCallback() {
		s.closeHostLater()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.host.CloseTimeout())
	defer cancel()
	if err := s.await(ctx, s.stopped); err != nil {
		return &CloseError{Informer: s.cfg.Name, Running: s.runningHandlers(), Cause: err}
	}
	if s.ownHost {
		return s.host.Close()
	}
	return nil
}

// closeHostLater has the host of the informer's own closed when nothing of the
// informer is left, once, however often it is called. The clock is that host's,
// so it is the real one, and the function has a goroutine to itself.
func (s *SharedInformer[T]) closeHostLater() {
	if !s.ownHost {
		return
	}
	s.parting.Do(func() {
		s.host.Clock().AfterFunc(0, func() {
			<-s.stopped
			_ = s.host.Close()
		})
	})
}

// reasonOf returns what is behind a [NotSyncedError].
func reasonOf(err error) error {
	var late *NotSyncedError
	if errors.As(err, &late) && len(late.Laggards) == 1 {
		return late.Laggards[0].Err
	}
	return err
}
