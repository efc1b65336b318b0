package actors

import (
	"context"
	"slices"
	"strings"
)

// Close stops all actors, children before parents, and waits until they are
// gone and the executors that the system made have ended. Spawning on the
// system fails from the moment that it is called.
//
// If ctx ends first the error is a [*StillRunningError] (or wraps
// [ErrStillRunning]) that says what is left: an actor cannot be stopped while
// its turn blocks. The actors go on stopping, and Close may be called again to
// go on waiting.
//
// With SystemConfig.Executor set, Close runs that executor, if it has a method
// Run() int like [Seeded], since nobody else will.
//
// Close is idempotent and safe for concurrent use. It must not be called from a
// turn, which it would wait for.
func (s *System) Close(ctx context.Context) error {
	s.top.Stop()
	s.drive(ctx)
	if err := s.await(ctx); err != nil {
		return err
	}
	if s.owned.blocking != nil {
		if err := s.owned.blocking.Close(ctx); err != nil {
			return err
		}
	}
	s.shutdown.Do(func() {
		if s.owned.pool != nil {
			s.owned.pool.Close()
		}
	})
	return nil
}

// drive runs an executor that does not run by itself.
func (s *System) drive(ctx context.Context) {
	switch exec := s.pool.(type) {
	case interface{ drive(context.Context) }:
		exec.drive(ctx)
	case interface{ Run() int }:
		exec.Run()
	}
}

// await waits for the top actor, and so for all.
func (s *System) await(ctx context.Context) error {
	select {
	case <-s.gone:
		return nil
	default:
	}
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
		return s.stillRunning(context.Cause(ctx), func(*cell) bool { return true })
	}
}

// stillRunning names the cell and those below it, as far as they are left.
func (c *cell) stillRunning(cause error) error {
	name := c.name()
	return c.origin.system.stillRunning(cause, func(c *cell) bool {
		return c.name() == name || strings.HasPrefix(c.name(), name+"/")
	})
}

// stillRunning names the actors that counts selects, and counts the wake actors
// below them.
func (s *System) stillRunning(cause error, counts func(*cell) bool) error {
	e := &StillRunningError{Cause: cause}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.named {
		switch {
		case !counts(c):
			continue
		case c.is(running):
			e.Busy = append(e.Busy, c.name())
		default:
			e.Waiting = append(e.Waiting, c.name())
		}
		e.Wakers += int(c.origin.wakers.Load())
	}
	slices.Sort(e.Busy)
	slices.Sort(e.Waiting)
	return e
}
