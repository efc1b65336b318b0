package serve

import (
	"io"
	"net/http"
	"time"
)

// A write has no place among the writes while its body arrives, so that clients which send
// slowly keep no other from writing:
//
//	enter ──▶ writes ──▶ arrivals ──▶ writes ──▶ leave
//	                        └── full: the one that has arrived longest, of the user with the
//	                            most of them, is given up

// arrive takes a write's place among the writes, and gives it one among the arrivals, which have as
// many places. Another write is given up for that if need be; the new one is refused if none gives
// way, or if the connection of the other has no deadlines.
func (f *inFlight) arrive(c *call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.arrivals.order.Len() >= f.limits.Writes {
		slow := f.arrivals.slowest(c)
		if slow == nil || slow.giveUpBody() != nil {
			return c.refuse(LimitBodies, tooManyInFlight)
		}
		f.arrivals.drop(slow)
	}
	f.giveBack(c)
	f.arrivals.add(c, arrivalPlace)
	return nil
}

// arrived gives a write whose body was read its place among the writes again, or refuses it with
// 429, as it does if the body was given up. A write whose body could not be read fails with the reason.
func (f *inFlight) arrived(c *call, why error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case c.slow == nil:
		if !c.w.OfStream() {
			c.w.Header().Set("Connection", "close") // nothing more can be read from it
		}
		return c.refuse(LimitBodies, "the body has given way to others since it arrived too slowly: the server reads only so many at a time")
	case why != nil:
		return why
	}
	f.giveBack(c)
	return f.enterWrites(c)
}

// giveUpBody makes the call's reader of its body fail.
func (c *call) giveUpBody() error {
	return http.NewResponseController(c.w).SetReadDeadline(time.Unix(1, 0))
}

// readBody reads the body of a write.
func (c *call) readBody() ([]byte, error) {
	if !c.hasBody() {
		return nil, nil
	}
	c.mustArrive()
	if err := c.inFlight.arrive(c); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.read, c.limits.BodyBytes))
	c.allRead = err == nil
	if err := c.inFlight.arrived(c, err); err != nil {
		return nil, err
	}
	return text, nil
}

// leaveUnread gives up the place of a write that fails before its body was read. Over HTTP/1.1
// net/http reads that when the answer begins, for as long as it may take to arrive.
func (c *call) leaveUnread() {
	if c.w.OfStream() || c.allRead || !c.hasBody() || c.place != writePlace {
		return
	}
	refused := c.refused
	if c.inFlight.arrive(c) != nil {
		c.refused = refused
		c.w.Header().Set("Connection", "close") // so that net/http does not read it
	}
}
