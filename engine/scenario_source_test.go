package engine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/datadriven"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

var errUnreachable = errors.New("storage cannot be reached")

// flaky is the scenarios' storage: memory, with a connection that can break.
// What writes does not use that connection.
type flaky struct {
	*memory.Backend
	down    bool
	watches []*connection

	listed, watched int
}

func newFlaky(clock actors.Clock) (*flaky, error) {
	b, err := memory.New(itemConfig().Schema(), memory.Options{Clock: clock})
	return &flaky{Backend: b}, err
}

func (s *flaky) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if s.down {
		return nil, errUnreachable
	}
	s.listed++
	return s.Backend.List(ctx, opts)
}

func (s *flaky) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	if s.down {
		return nil, errUnreachable
	}
	w, err := s.Backend.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	s.watched++
	c := &connection{Watcher: w, notify: opts.Notify}
	s.watches = append(s.watches, c)
	return c, nil
}

// connection is a watch on storage.
type connection struct {
	backend.Watcher
	notify func()
	broken bool
}

func (c *connection) Next(max int) (backend.Batch, error) {
	if c.broken {
		return backend.Batch{}, errUnreachable
	}
	return c.Watcher.Next(max)
}

// cut breaks the connection, for good if the command is down.
func (s *scenario) cut(d *datadriven.TestData) (string, error) {
	s.source.down = d.Cmd == "down"
	for _, c := range s.source.watches {
		c.broken = true
		c.notify()
	}
	s.source.watches = nil
	return "", nil
}

func (s *scenario) reach(*datadriven.TestData) (string, error) {
	s.source.down = false
	return "", nil
}

func (s *scenario) restore(d *datadriven.TestData) (string, error) {
	old := s.source.Backend
	empty, err := newFlaky(s.host.Clock())
	if err != nil {
		return "", err
	}
	s.source.Backend = empty.Backend
	if _, err := s.cut(d); err != nil {
		return "", err
	}
	return "", old.Close()
}

func (s *scenario) asked(*datadriven.TestData) (string, error) {
	return fmt.Sprintf("listed %d, watched %d", s.source.listed, s.source.watched), nil
}
