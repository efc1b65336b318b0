package serve

import (
	"errors"
	"net/http"
	"time"

	"github.com/watchmill/watchmill/serve/internal/inflight"
	"github.com/watchmill/watchmill/serve/internal/status"
)

// A call is an [inflight.Request]. These are the methods by which the server's limiter knows it, finds it to be
// slow, and has it give way.

// User implements inflight.Request.
func (c *call) User() string { return c.user.Name }

// Place implements inflight.Request.
func (c *call) Place() *inflight.Place { return &c.place }

// Sending implements inflight.Request.
func (c *call) Sending() (since time.Time, sends bool) { return c.w.Sending() }

// CutOff implements inflight.Request.
func (c *call) CutOff() error { return c.w.CutOff() }

// GiveUpBody implements inflight.Request.
func (c *call) GiveUpBody() error {
	return http.NewResponseController(c.w).SetReadDeadline(time.Unix(1, 0)) // in the past
}

// enter admits the request, or refuses it with 429. What it takes is given back by finish.
func (c *call) enter() error {
	if c.entered = c.running.begin(); !c.entered { // it has arrived before the refusals
		return c.refuseDraining()
	}
	if err := c.limiter.Enter(c, c.req.limitedAs()); err != nil {
		c.exit() // a shutdown does not wait for the client to read that
		return asRefusal(err)
	}
	return nil
}

// exit lets a shutdown go on without the request, if that was admitted.
func (c *call) exit() {
	if c.entered {
		c.entered = false
		c.running.over()
	}
}

// depart says that the answer is sent now, for as long as the client takes to read it. Over HTTP/2 one without a place
// gets one, too: a connection may have as many of these at a time as it has streams.
func (c *call) depart() {
	c.limiter.Depart(c)
	if c.w.OfStream() {
		c.limiter.DepartUnadmitted(c)
	}
}

// limitOf names the limit that keeps a request without a place out.
var limitOf = map[inflight.FullError]Limit{
	{Of: inflight.Read}:                 LimitReads,
	{Of: inflight.Read, PerUser: true}:  LimitReadsPerUser,
	{Of: inflight.Write}:                LimitWrites,
	{Of: inflight.Write, PerUser: true}: LimitWritesPerUser,
	{Of: inflight.Watch}:                LimitWatches,
	{Of: inflight.Watch, PerUser: true}: LimitWatchesPerUser,
}

// refusal is the error of a request above a limit, which is answered with 429.
type refusal struct {
	by Limit
	as *status.Error
}

func (r *refusal) Error() string { return r.as.Error() }

// Unwrap returns the Status that the request is answered with.
func (r *refusal) Unwrap() error { return r.as }

// refuse returns the error of a request above a limit.
func refuse(by Limit, why error) error { return &refusal{by, status.TooMany(why.Error())} }

// asRefusal returns the refusal for an error of the limiter, and other errors as they are.
func asRefusal(err error) error {
	if full, is := errors.AsType[inflight.FullError](err); is {
		return refuse(limitOf[full], full)
	}
	if errors.Is(err, inflight.ErrBodies) || errors.Is(err, inflight.ErrGivenUp) {
		return refuse(LimitBodies, err)
	}
	return err
}

// refuseDraining returns the error of a request to a server that shuts down.
func (c *call) refuseDraining() error {
	c.w.Header().Set("Connection", "close")
	return refuse(LimitDraining, errShuttingDown)
}

// refusedBy returns the limit by which an error refuses its request, empty if by none.
func refusedBy(err error) Limit {
	if r, is := errors.AsType[*refusal](err); is {
		return r.by
	}
	if _, is := errors.AsType[*http.MaxBytesError](err); is {
		return LimitBody
	}
	return ""
}
