package main

import (
	"fmt"
	"sync/atomic"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/inspect"
)

// inspector is the page of a run's engine. The zero value shows nothing.
type inspector struct {
	server *inspect.Server
	host   atomic.Pointer[engine.Host]
}

// inspector serves the page if the flags ask for it, and says where.
func (c *simRunCommand) inspector(t *terminal) (*inspector, error) {
	i := &inspector{}
	if c.Inspect == "" {
		return i, nil
	}
	server, err := inspect.ListenFunc(c.Inspect, func() []*engine.Host {
		if h := i.host.Load(); h != nil {
			return []*engine.Host{h}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	i.server = server
	fmt.Fprintf(t.stderr, "inspect the run at %s\n", server.URL())
	return i, nil
}

// show shows the engines of the host.
func (i *inspector) show(h *engine.Host) { i.host.Store(h) }

func (i *inspector) close() {
	if i.server != nil {
		_ = i.server.Close() // nothing depends on it any more
	}
}
