package serve

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/serve/internal/status"
	"github.com/watchmill/watchmill/serve/internal/transport"
)

// inFlight counts the requests that are being served.
type inFlight struct {
	limits *Limits

	mu            sync.Mutex
	open          int // requests that have entered, until their hooks have been called
	reads, writes places
	reading       map[*call]struct{}  // those that have a place among the reads
	arrivals      slowCalls           // writes whose bodies arrive
	departures    slowCalls           // reads whose answers depart slowly
	watches       map[*call]*watching // nil while a watch starts
	watchers      places              // of the watches
	starts        map[*call]context.CancelCauseFunc
	taken         map[*transport.Taken]struct{} // connections that watches have taken over
	closing       error                         // what ends every watch from now on, when no request enters any more
	idle          chan struct{}                 // closed when nothing is left, if there is a waiter
}

func newInFlight(limits *Limits) *inFlight {
	return &inFlight{limits: limits, reading: map[*call]struct{}{}, watches: map[*call]*watching{}, starts: map[*call]context.CancelCauseFunc{}, taken: map[*transport.Taken]struct{}{}}
}

// place is what a request has in inFlight.
type place uint8

const (
	noPlace place = iota
	readPlace
	writePlace
	watchPlace
	arrivalPlace   // of a write, for as long as its body arrives
	departurePlace // of a read that has made room for others
)

// places are how many requests of one sort have a place.
type places struct {
	all    int
	byUser map[string]int
}

func (p *places) take(user string) {
	if p.byUser == nil {
		p.byUser = map[string]int{}
	}
	p.all++
	p.byUser[user]++
}

func (p *places) giveBack(user string) {
	p.all--
	if p.byUser[user]--; p.byUser[user] == 0 {
		delete(p.byUser, user)
	}
}

// enter admits a request or refuses it with 429. The caller calls leave when the request is
// over, and over once its hooks have been called.
func (f *inFlight) enter(c *call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.admit(c)
	if c.open = err == nil; c.open {
		f.open++
	}
	return err
}

// admit is enter, without the count. The caller holds f.mu.
func (f *inFlight) admit(c *call) error {
	switch {
	case f.closing != nil: // the request has arrived before the refusals
		return c.refuseDraining()
	case c.req.Verb == "watch" && c.req.IsResource():
		return f.enterWatches(c)
	case c.req.reads():
		return f.enterReads(c)
	}
	return f.enterWrites(c)
}

// enterWatches is enter for a watch. The caller holds f.mu.
func (f *inFlight) enterWatches(c *call) error {
	switch {
	case f.watchers.all >= f.limits.Watches:
		return c.refuse(LimitWatches, "the server has as many watches as it may have")
	case f.watchers.byUser[c.user.Name] >= f.limits.WatchesPerUser:
		return c.refuse(LimitWatchesPerUser, "you have as many watches as one user may have")
	}
	f.watchers.take(c.user.Name)
	f.watches[c] = nil
	c.place = watchPlace
	return nil
}

// enterReads is enter for a request that changes nothing. The caller holds f.mu.
func (f *inFlight) enterReads(c *call) error {
	switch {
	case f.limits.ReadsPerUser < f.limits.Reads && f.reads.byUser[c.user.Name] >= f.limits.ReadsPerUser && !f.makeRoom(c, true):
		return c.refuse(LimitReadsPerUser, tooManyOfUser)
	case f.reads.all >= f.limits.Reads && !f.makeRoom(c, false):
		return c.refuse(LimitReads, tooManyInFlight)
	}
	f.reads.take(c.user.Name)
	f.reading[c] = struct{}{}
	c.place = readPlace
	return nil
}

// enterWrites is enter for a write. The caller holds f.mu.
func (f *inFlight) enterWrites(c *call) error {
	switch {
	case f.writes.all >= f.limits.Writes:
		return c.refuse(LimitWrites, tooManyInFlight)
	case f.writes.byUser[c.user.Name] >= f.limits.WritesPerUser:
		return c.refuse(LimitWritesPerUser, tooManyOfUser)
	}
	f.writes.take(c.user.Name)
	c.place = writePlace
	return nil
}

const (
	tooManyInFlight = "the server has as many requests in flight as it may have"
	tooManyOfUser   = "you have as many requests in flight as one user may have"
)

// refuse returns the 429 for a request above a limit.
func (c *call) refuse(by Limit, message string) error {
	c.refused = by
	return status.TooMany(message)
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
	f.giveBack(c)
}

// over ends what enter has begun.
func (f *inFlight) over(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.open {
		f.open--
		f.signalIdle()
	}
}

// giveBack gives back the place of a request. The caller holds f.mu.
func (f *inFlight) giveBack(c *call) {
	switch c.place {
	case readPlace:
		f.reads.giveBack(c.user.Name)
		delete(f.reading, c)
	case writePlace:
		f.writes.giveBack(c.user.Name)
	case arrivalPlace:
		f.arrivals.remove(c)
	case departurePlace:
		f.departures.remove(c)
	case watchPlace:
		delete(f.watches, c)
		f.watchers.giveBack(c.user.Name)
	}
	c.place = noPlace
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
	f.signalIdle()
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
	f.signalIdle()
	return idle
}

// signalIdle closes the channel of whenIdle if nothing is being served. The caller holds
// f.mu.
func (f *inFlight) signalIdle() {
	if f.idle != nil && f.open+len(f.taken) == 0 {
		close(f.idle)
		f.idle = nil
	}
}

// counted are the numbers of an inFlight.
type counted struct{ reads, writes, arrivals, departures, watches int }

func (f *inFlight) counts() counted {
	f.mu.Lock()
	defer f.mu.Unlock()
	return counted{f.reads.all, f.writes.all, f.arrivals.all, f.departures.all, f.watchers.all}
}
