package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/watchmill/watchmill/engine"
)

// Metrics receives what a server measures; package serve/prommetrics has one for
// Prometheus. Its methods are called concurrently, on the goroutines of requests: they
// must be quick and must not block. A panic is logged, and changes no answer.
//
// It may gain methods. An implementation embeds [NoMetrics], which will have them, too.
type Metrics interface {
	// Served is called once a request is over, and once a watch has ended.
	Served(m Measured)
	// Watching is called when a watch begins, and returns the metrics of that watch.
	Watching(on Endpoint) WatchMetrics

	embedsNoMetrics()
}

// NoMetrics is the [Metrics] that measures nothing. An implementation embeds it, and has methods
// for what it measures.
type NoMetrics struct{}

// Served does nothing.
func (NoMetrics) Served(Measured) {}

// Watching returns a [NoWatchMetrics].
func (NoMetrics) Watching(Endpoint) WatchMetrics { return NoWatchMetrics{} }

func (NoMetrics) embedsNoMetrics() {}

// WatchMetrics receives what one watch measures. Its methods are called one at a time. A
// panic is logged, and the watch goes on.
//
// It may gain methods. An implementation embeds [NoWatchMetrics], which will have them, too.
type WatchMetrics interface {
	// Sent is called with the size in bytes of each event that was written, including
	// bookmarks and errors, and not with those that found the connection broken.
	Sent(bytes int)
	// Synced is called once, with the time from the request to the complete initial
	// state.
	Synced(took time.Duration)
	// Written is called after each flush, with how long writing has waited for the
	// connection since the one before. It is long if the client reads slowly.
	Written(took time.Duration)
	// Ended is called last.
	Ended()

	embedsNoWatchMetrics()
}

// NoWatchMetrics is the [WatchMetrics] that measures nothing. An implementation embeds it, and
// has methods for what it measures.
type NoWatchMetrics struct{}

// Sent does nothing.
func (NoWatchMetrics) Sent(int) {}

// Synced does nothing.
func (NoWatchMetrics) Synced(time.Duration) {}

// Written does nothing.
func (NoWatchMetrics) Written(time.Duration) {}

// Ended does nothing.
func (NoWatchMetrics) Ended() {}

func (NoWatchMetrics) embedsNoWatchMetrics() {}

// Endpoint is the target of a request. The number of Endpoints is bounded: all methods
// and resources that are not served are one.
type Endpoint struct {
	// Verb is GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE, DELETECOLLECTION, or
	// "other".
	Verb string
	// Group, Version, Resource and Subresource name a resource that is served; they are
	// empty for any other target.
	Group, Version, Resource, Subresource string
	// Scope is "cluster", "namespace", or "resource" for one object; empty if the target
	// is not a resource.
	Scope string
	// DryRun: the request was a dry run.
	DryRun bool
}

// Measured is a request that is over.
type Measured struct {
	Endpoint
	// Code is the HTTP status.
	Code int
	// Took is how long it was served.
	Took time.Duration
	// RequestBytes is how much of the request's body was read, ResponseBytes how much of
	// the answer's was written.
	RequestBytes, ResponseBytes int64
	// Refused is the limit by which the request was refused or cut off, empty if none.
	Refused Limit
	// TimedOut: the request took too long, and was answered with 504. It is not set for a 504 that says
	// that a revision is yet to come.
	TimedOut bool
	// Aborted: the connection was closed because the answer could not be completed.
	Aborted bool
}

// Limit names a bound on clients.
type Limit string

// The limits. All but LimitBodies and LimitDraining are fields of [Limits]: LimitBody is BodyBytes, and LimitStall
// is WriteStall.
const (
	// LimitReads also cuts off an answer that is sent slowly; see [Limits].Reads.
	LimitReads          Limit = "reads"
	LimitWrites         Limit = "writes"
	LimitReadsPerUser   Limit = "reads_per_user"
	LimitWritesPerUser  Limit = "writes_per_user"
	LimitWatches        Limit = "watches"
	LimitWatchesPerUser Limit = "watches_per_user"
	LimitBody           Limit = "body"
	// LimitBodies: the body arrived more slowly than others; see [Limits].Writes.
	LimitBodies Limit = "bodies"
	// LimitStall: the client read more slowly than [Limits].WriteStall allows.
	LimitStall Limit = "write_stall"
	// LimitDraining: the server was shutting down.
	LimitDraining Limit = "draining"
)

// AllLimits returns every limit, in a fixed order.
func AllLimits() []Limit {
	return []Limit{
		LimitReads, LimitWrites, LimitReadsPerUser, LimitWritesPerUser, LimitWatches, LimitWatchesPerUser, LimitBody, LimitBodies, LimitStall, LimitDraining,
	}
}

// watchMeter tells the metrics of one watch what it does, and contains their panics. A nil one, of a server without
// metrics, measures nothing.
type watchMeter struct {
	c      *call
	to     WatchMetrics
	waited time.Duration // for the connection, since the last flush
}

// newWatchMeter tells the server's metrics that a watch begins.
func newWatchMeter(c *call) (m *watchMeter) {
	if c.cfg.Metrics != nil {
		c.hook("Metrics.Watching", func() { m = &watchMeter{c: c, to: c.cfg.Metrics.Watching(c.endpoint(c.r))} })
	}
	return m
}

// sent tells the size of an event that was written.
func (m *watchMeter) sent(bytes int) {
	if m != nil {
		m.c.hook("WatchMetrics.Sent", func() { m.to.Sent(bytes) })
	}
}

// synced tells how long the initial state took.
func (m *watchMeter) synced(took time.Duration) {
	if m != nil {
		m.c.hook("WatchMetrics.Synced", func() { m.to.Synced(took) })
	}
}

// now returns the time at which a write begins.
func (m *watchMeter) now() (began time.Time) {
	if m != nil {
		began = time.Now()
	}
	return began
}

// wrote adds the time of a write.
func (m *watchMeter) wrote(began time.Time) {
	if m != nil {
		m.waited += time.Since(began)
	}
}

// flushed tells how long the writes since the last flush have taken.
func (m *watchMeter) flushed() {
	if m != nil {
		m.c.hook("WatchMetrics.Written", func() { m.to.Written(m.waited) })
		m.waited = 0
	}
}

// ended tells that the watch has ended.
func (m *watchMeter) ended() {
	if m != nil {
		m.c.hook("WatchMetrics.Ended", func() { m.to.Ended() })
	}
}

// endpoint returns the target of a request as metrics receive it.
func (t *target) endpoint(r *http.Request) Endpoint {
	e := Endpoint{Verb: t.metricVerb(r), DryRun: t.req.dryRun || t.req.query.Has("dryRun")}
	if t.info == nil {
		return e
	}
	e.Group, e.Version, e.Resource, e.Subresource = t.info.Kind.Group, t.info.Kind.Version, t.info.Kind.Plural, t.info.Subresource
	switch {
	case t.req.Name != "" || t.req.Verb == "create":
		e.Scope = "resource"
	case t.req.Namespace != "":
		e.Scope = "namespace"
	default:
		e.Scope = "cluster"
	}
	return e
}

// metricVerb is the verb as the metrics of the API server have it: the method in
// most cases.
func (t *target) metricVerb(r *http.Request) string {
	switch {
	case t.info != nil && t.req.selects():
		return strings.ToUpper(t.req.Verb)
	case r.Method == http.MethodPatch && strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch"):
		return "APPLY"
	}
	switch r.Method {
	case http.MethodHead:
		return http.MethodGet
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return r.Method
	}
	return "other"
}

// measured returns the call as metrics receive it.
func (c *call) measured() Measured {
	m := Measured{
		Endpoint: c.endpoint(c.r), Code: c.w.Code(), Took: time.Since(c.began), ResponseBytes: c.w.Bytes(),
		Refused: refusedBy(c.failure), Aborted: c.aborted,
		TimedOut: c.failure != nil && c.w.Code() == http.StatusGatewayTimeout && !errors.Is(c.failure, engine.ErrFuture),
	}
	switch {
	case !c.w.Stalled() || m.Refused != "":
	case c.w.WasCut():
		m.Refused = LimitReads
	default:
		m.Refused = LimitStall
	}
	if c.body != nil {
		m.RequestBytes = c.body.bytes
	}
	return m
}

// metricsPage answers /metrics, with a context that ends after limit.
func (c *call) metricsPage(limit time.Duration) error {
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return c.methodNotAllowed()
	}
	ctx, cancel := context.WithTimeout(c.withUser(c.r.Context()), limit)
	defer cancel()
	c.cfg.MetricsHandler.ServeHTTP(c.w, c.r.WithContext(ctx))
	return nil
}
