package serve

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/serve/internal/transport"
)

// inFlight counts the requests that are being served.
type inFlight struct {
	limits *Limits

	mu            sync.Mutex
	reads, writes int
	watches       map[*call]*watching // nil while a watch starts
	starts        map[*call]context.CancelCauseFunc
	taken         map[*transport.Taken]struct{} // connections that watches have taken over
	perUser       map[string]int
	closing       error         // what ends every watch from now on, when no request enters any more
	idle          chan struct{} // closed when nothing is left, if there is a waiter
}

func newInFlight(limits *Limits) *inFlight {
	return &inFlight{limits: limits, watches: map[*call]*watching{}, starts: map[*call]context.CancelCauseFunc{}, taken: map[*transport.Taken]struct{}{}, perUser: map[string]int{}}
}

// place is what a request has in inFlight.
type place uint8

const (
	noPlace place = iota
	readPlace
	writePlace
	watchPlace
)

// enter admits a request or refuses it with 429. The caller calls leave with its place when
// the request is over.
func (f *inFlight) enter(c *call) (place, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing != nil { // the request has arrived before the refusals
		return noPlace, c.refuseDraining()
	}
	user := c.user.Name
	switch {
	case c.req.Verb == "watch" && c.req.IsResource():
		if len(f.watches) >= f.limits.Watches {
			return noPlace, c.refuse(LimitWatches, "the server has as many watches as it may have")
		}
		if f.perUser[user] >= f.limits.WatchesPerUser {
			return noPlace, c.refuse(LimitWatchesPerUser, "you have as many watches as one user may have")
		}
		f.perUser[user]++
		f.watches[c] = nil
		return watchPlace, nil
	case c.req.reads():
		if f.reads >= f.limits.Reads {
			return noPlace, c.refuse(LimitReads, tooManyInFlight)
		}
		f.reads++
		return readPlace, nil
	}
	if f.writes >= f.limits.Writes {
		return noPlace, c.refuse(LimitWrites, tooManyInFlight)
	}
	f.writes++
	return writePlace, nil
}

const tooManyInFlight = "the server has as many requests in flight as it may have"

// refuse returns the 429 for a request above a limit.
func (c *call) refuse(by Limit, message string) error {
	c.refused = by
	return tooMany(message)
}

// refuseDraining returns the 429 for a request to a server that shuts down.
func (c *call) refuseDraining() error {
	c.w.Header().Set("Connection", "close")
	return c.refuse(LimitDraining, errShuttingDown.Error())
}

// leave gives back the place of a request that is over.
func (f *inFlight) leave(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch c.place {
	case readPlace:
		f.reads--
	case writePlace:
		f.writes--
	case watchPlace:
		delete(f.watches, c)
		user := c.user.Name
		if f.perUser[user]--; f.perUser[user] == 0 {
			delete(f.perUser, user)
		}
	}
	f.tellIdle()
}

// take counts a connection that a watch has taken over, until release.
func (f *inFlight) take(t *transport.Taken) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken[t] = struct{}{}
}

func (f *inFlight) release(t *transport.Taken) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.taken, t)
	f.tellIdle()
}

// cut closes the connections that watches have taken over.
func (f *inFlight) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for t := range f.taken {
		go t.Break() // over TLS it may wait for the client
	}
}

// starting says how to interrupt the start of a watch, and interrupts it at once if all
// watches have been ended. The caller calls startOver in the end.
func (f *inFlight) starting(c *call, interrupt context.CancelCauseFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts[c] = interrupt
	if f.closing != nil {
		interrupt(f.closing)
	}
}

// startOver says that the start of a watch is over, whether it has started or failed.
func (f *inFlight) startOver(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.starts, c)
}

// started says that a watch has started, and ends it at once if all watches have been
// ended.
func (f *inFlight) started(c *call, w *watching) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches[c] = w
	if f.closing != nil {
		w.endBy(f.closing)
	}
}

// endAll ends all watches, present and future, and those that still start. No request enters
// after it.
func (f *inFlight) endAll(why error) {
	f.mu.Lock()
	f.closing = why
	for _, interrupt := range f.starts {
		interrupt(why)
	}
	f.mu.Unlock()
	for _, w := range f.allStarted() {
		w.endBy(why)
	}
}

// allStarted returns the watches that have started.
func (f *inFlight) allStarted() []*watching {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*watching, 0, len(f.watches))
	for _, w := range f.watches {
		if w != nil {
			all = append(all, w)
		}
	}
	return all
}

// whenIdle returns a channel that is closed when nothing is being served.
func (f *inFlight) whenIdle() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	idle := f.idle
	f.tellIdle()
	return idle
}

// tellIdle closes the channel of whenIdle if nothing is being served. The caller holds
// f.mu.
func (f *inFlight) tellIdle() {
	if f.idle != nil && f.reads+f.writes+len(f.watches)+len(f.taken) == 0 {
		close(f.idle)
		f.idle = nil
	}
}

func (f *inFlight) counts() (reads, writes, watches int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads, f.writes, len(f.watches)
}
