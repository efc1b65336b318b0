package actors

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Close stops all actors, children before parents, and waits until they have
// stopped and the executors that the system made have ended. Spawning on the
// system fails from the moment that Close is called.
//
// If ctx ends first the error is a [*StillRunningError] (or wraps
// [ErrStillRunning]) that says what is left: an actor cannot be stopped while
// its turn blocks. The actors go on stopping, and Close may be called again to
// go on waiting.
//
// With SystemConfig.Executor set, Close runs that executor, if it has a method Run() int
// like [Seeded], since it does not run by itself. If the executor embeds a Seeded, Close
// runs the Seeded, which ctx bounds, and not a Run that the executor declares.
//
// Close is idempotent and safe for concurrent use. In a turn, or in an OnFailure that the
// pool calls outside turns, it does not wait: the error is a [*StillRunningError] because
// of [ErrInTurn], and the rest is done in the background, or with SystemConfig.Executor,
// which does not run by itself, by the next Close.
func (s *System) Close(ctx context.Context) error {
	s.root.Stop()
	if InTurn() {
		return s.closeInTurn()
	}
	return s.finish(ctx)
}

// closeInTurn goes on with Close in the background.
func (s *System) closeInTurn() error {
	select {
	case <-s.closed:
		return nil
	default:
	}
	if s.owned.pool != nil {
		s.later.Do(func() { go func() { _ = s.finish(context.Background()) }() })
	}
	return s.stillRunning(ErrInTurn, anyCell)
}

// finish waits for the actors, and ends the executors.
func (s *System) finish(ctx context.Context) error {
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
		defer close(s.closed) // even if the clock ends the goroutine
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

// await waits for the root actor, and so for all.
func (s *System) await(ctx context.Context) error {
	select {
	case <-s.stopped:
		return nil
	default:
	}
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
		return s.stillRunning(context.Cause(ctx), anyCell)
	}
}

// stillRunning names the cell and those below it, unless they have stopped.
func (c *cell) stillRunning(cause error) error {
	s := c.spec.system
	parents := s.parents()
	return s.stillRunning(cause, func(other *cell) bool {
		id := other.id
		for id != c.id && id != 0 {
			id = parents[id]
		}
		return id == c.id
	})
}

// parents returns the parents of the actors that have queues, by ID.
func (s *System) parents() map[ID]ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	parents := make(map[ID]ID, len(s.named)+len(s.ending))
	for _, cells := range []map[*cell]struct{}{s.named, s.ending} {
		for c := range cells {
			parents[c.id] = c.spec.parentID
		}
	}
	return parents
}

// anyCell selects all actors.
func anyCell(*cell) bool { return true }

// stillRunning names the actors that match selects, and counts the wake actors
// below them.
func (s *System) stillRunning(cause error, match func(*cell) bool) *StillRunningError {
	e := &StillRunningError{Cause: cause}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.named {
		switch {
		case !match(c):
			continue
		case c.is(running):
			e.Busy = append(e.Busy, c.name())
		default:
			e.Waiting = append(e.Waiting, c.name())
		}
		e.Wakers += int(c.spec.wakers.Load())
	}
	for c := range s.ending {
		if match(c) {
			e.Busy = append(e.Busy, c.name())
		}
	}
	slices.Sort(e.Busy)
	slices.Sort(e.Waiting)
	return e
}

// StillRunningError says which actors had not stopped when [System.Close], or
// the caller of [Ref.StillRunning], gave up waiting.
type StillRunningError struct {
	// Busy are the names, sorted, of actors with a turn in progress: if one that has a
	// queue blocks, it is among these.
	Busy []string
	// Waiting are the names, sorted, of the others; they wait for their children.
	Waiting []string
	// Wakers is the number of wake actors left, children of those above. Those that have
	// come to their Stopped are not counted.
	Wakers int
	// Cause is why waiting ended: the cause of the context, or [ErrInTurn].
	Cause error
}

func (e *StillRunningError) Error() string {
	var left []string
	if len(e.Busy) > 0 {
		left = append(left, "in a turn: "+strings.Join(e.Busy, ", "))
	}
	if len(e.Waiting) > 0 {
		left = append(left, "waiting: "+strings.Join(e.Waiting, ", "))
	}
	if e.Wakers > 0 {
		left = append(left, fmt.Sprintf("%d wake actors", e.Wakers))
	}
	if len(left) == 0 { // all have ended, but not the executors yet
		return fmt.Sprintf("actors still running: %v", e.Cause)
	}
	return fmt.Sprintf("actors still running (%s): %v", strings.Join(left, "; "), e.Cause)
}

// Is makes errors.Is(err, ErrStillRunning) true.
func (e *StillRunningError) Is(target error) bool { return target == ErrStillRunning }

// Unwrap returns the cause.
func (e *StillRunningError) Unwrap() error { return e.Cause }
