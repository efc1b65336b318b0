package serve

import (
	"context"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/engine"
)

// uses counts the requests that use the kinds of a provider, for [Server.WaitUnused].
//
//	admit ──begin──▶ running ──end, when the request is answered or its watch has started──▶
//	Remove ──remove──▶ no request begins ──running is zero──▶ over
type uses struct {
	// over is closed when the provider is removed and no request uses it.
	over chan struct{}

	mu      sync.Mutex // guards all below
	by      Provider   // nil once over is closed, so that a closed store can be collected
	running int
	removed bool
}

func newUses(of Provider) *uses { return &uses{by: of, over: make(chan struct{})} }

// begin counts a request, and reports false if the provider was removed.
func (u *uses) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.removed {
		u.running++
	}
	return !u.removed
}

// end ends what begin has begun.
func (u *uses) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.running--
	u.endOver()
}

// remove lets no request begin any more.
func (u *uses) remove() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.removed = true
	u.endOver()
}

// endOver closes over if nothing is left to wait for. The caller holds u.mu.
func (u *uses) endOver() {
	if u.removed && u.running == 0 {
		u.by = nil
		close(u.over)
	}
}

// isOf reports whether requests still use the provider p by these.
func (u *uses) isOf(p Provider) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return isSame(p, u.by)
}

// isOver reports whether over is closed.
func (u *uses) isOver() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.by == nil
}

// WaitUnused waits until the requests are answered that have found the kinds of providers before
// they were removed or replaced, so that their stores can be closed then. It does not wait for
// watches that have started. A client that sends or reads slowly can make it wait for as long as the
// [Limits] let a request last, so give ctx a deadline. Do not call it from a function that a request
// of these kinds calls: it would wait for itself.
//
// Errors: an [*engine.ConfigError] if a provider is still served, or cannot be compared, see [Provider],
// and ctx's cause.
func (s *Server) WaitUnused(ctx context.Context, of ...Provider) error {
	leaving, err := s.leavingOf(of)
	if err != nil {
		return err
	}
	for _, u := range leaving {
		select {
		case <-u.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// leavingOf returns the uses that providers have although they are not served any more.
func (s *Server) leavingOf(of []Provider) (leaving []*uses, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	for _, p := range of {
		if p != nil && !isSame(p, p) {
			return nil, &engine.ConfigError{Field: "of", Problem: "has a Provider that cannot be compared, and so is never removed; give a pointer to it to Add and Remove, and here"}
		}
		if slices.ContainsFunc(s.kinds.Load().providers, func(served provided) bool { return isSame(p, served.by) }) {
			return nil, &engine.ConfigError{Field: "of", Problem: "has a Provider that is still served; call Remove or Replace before"}
		}
		for _, u := range s.leaving {
			if u.isOf(p) {
				leaving = append(leaving, u)
			}
		}
	}
	return leaving, nil
}

// find sets the resource that the request is for, if that is served. The call uses it until leaveUse.
func (c *call) find() {
	name := resourceName{c.req.Group, c.req.Version, c.req.Resource, c.req.Subresource}
	for !c.using {
		found := c.kinds.Load().resources[name]
		if found == nil {
			return
		}
		if found.uses.begin() { // else it was replaced just now
			c.served, c.using = found, true
		}
	}
}

// leaveUse ends the use of the resource, if the call has not done so yet.
func (c *call) leaveUse() {
	if c.using {
		c.using = false
		c.uses.end()
	}
}
