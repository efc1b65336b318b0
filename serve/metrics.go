package serve

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Metrics is told what a server does, for monitoring; package serve/prommetrics has
// one for Prometheus. Its methods are called on the goroutines of requests, by many
// at once: they must be quick and must not block.
type Metrics interface {
	// Served is told of each request once it is over, of a watch once it has ended.
	Served(m Measured)
	// Watching is told of each watch that begins, and returns what is told of its
	// events.
	Watching(on Endpoint) WatchMetrics
}

// WatchMetrics is told of one watch. Its methods are called one after the other.
type WatchMetrics interface {
	// Sent is told the size of each event that was written, bookmarks and errors
	// among them.
	Sent(bytes int)
	// Synced is told, once, how long after the request the initial state was complete.
	Synced(took time.Duration)
	// Ended is told that there will be no more.
	Ended()
}

// Endpoint is what a request was for. The number of endpoints is bounded: methods
// and resources that are not served are not told apart.
type Endpoint struct {
	// Verb is GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE, DELETECOLLECTION, or
	// "other".
	Verb string
	// Group, Version, Resource and Subresource are those of a resource that is
	// served, empty for anything else.
	Group, Version, Resource, Subresource string
	// Scope is "cluster", "namespace" or "resource" for one object; empty for what is
	// no resource.
	Scope string
	// DryRun: a write that was not to be stored.
	DryRun bool
}

// Measured is a request that is over.
type Measured struct {
	Endpoint
	// Code is the HTTP status.
	Code int
	// Took is how long it was served.
	Took time.Duration
	// RequestBytes is what was read of its body, ResponseBytes what was written of
	// the answer's.
	RequestBytes, ResponseBytes int64
	// Refused is the limit that refused it or cut it off, empty if none did.
	Refused Limit
	// Aborted: the connection was broken off, since the answer could not be finished.
	Aborted bool
}

// Limit names what bounds a client.
type Limit string

// The limits; all but the last two are fields of [Limits].
const (
	LimitReads          Limit = "reads"
	LimitWrites         Limit = "writes"
	LimitWatches        Limit = "watches"
	LimitWatchesPerUser Limit = "watches_per_user"
	LimitBody           Limit = "body"
	// LimitStall: the client took nothing for [Limits].WriteStall.
	LimitStall Limit = "write_stall"
	// LimitDraining: the server was shutting down.
	LimitDraining Limit = "draining"
)

// AllLimits returns every limit, in a fixed order.
func AllLimits() []Limit {
	return []Limit{LimitReads, LimitWrites, LimitWatches, LimitWatchesPerUser, LimitBody, LimitStall, LimitDraining}
}

// noMetrics is what a server without metrics tells.
type noMetrics struct{}

func (noMetrics) Served(Measured)                {}
func (noMetrics) Watching(Endpoint) WatchMetrics { return noMetrics{} }
func (noMetrics) Sent(int)                       {}
func (noMetrics) Synced(time.Duration)           {}
func (noMetrics) Ended()                         {}

// metrics returns what is told, which may be nothing.
func (c *call) metrics() Metrics {
	if c.cfg.Metrics == nil {
		return noMetrics{}
	}
	return c.cfg.Metrics
}

// endpoint returns what the call is for.
func (c *call) endpoint() Endpoint {
	e := Endpoint{Verb: c.metricVerb(), DryRun: c.req.query.Has("dryRun")}
	if c.info == nil {
		return e
	}
	e.Group, e.Version, e.Resource, e.Subresource = c.info.Kind.Group, c.info.Kind.Version, c.info.Kind.Plural, c.info.Subresource
	switch {
	case c.req.Name != "" || c.req.Verb == "create":
		e.Scope = "resource"
	case c.req.Namespace != "":
		e.Scope = "namespace"
	default:
		e.Scope = "cluster"
	}
	return e
}

// metricVerb is the verb as the metrics of the API server have it: the method in
// most cases.
func (c *call) metricVerb() string {
	switch {
	case c.info != nil && (c.req.Verb == "list" || c.req.Verb == "watch" || c.req.Verb == "deletecollection"):
		return strings.ToUpper(c.req.Verb)
	case c.r.Method == http.MethodPatch && strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/apply-patch"):
		return "APPLY"
	}
	switch c.r.Method {
	case http.MethodHead:
		return http.MethodGet
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return c.r.Method
	}
	return "other"
}

// measured is what the metrics are told of the call.
func (c *call) measured() Measured {
	m := Measured{
		Endpoint: c.endpoint(), Code: c.w.code, Took: time.Since(c.began), ResponseBytes: c.w.bytes,
		Refused: c.refused, Aborted: c.aborted,
	}
	if c.w.stalled && m.Refused == "" {
		m.Refused = LimitStall
	}
	if c.read != nil {
		m.RequestBytes = c.read.bytes
	}
	return m
}

// countedBody counts what is read of a body.
type countedBody struct {
	io.ReadCloser
	bytes int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes += int64(n)
	return n, err
}

// countBody counts the body of the call from now on. Requests without one, as
// watches, are not counted.
func (c *call) countBody() {
	if c.cfg.Metrics == nil || c.r.Body == nil || c.r.Body == http.NoBody {
		return
	}
	c.read = &countedBody{ReadCloser: c.r.Body}
	c.r.Body = c.read
}

// metricsPage answers /metrics.
func (c *call) metricsPage() error {
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return methodNotAllowed(c)
	}
	c.cfg.MetricsHandler.ServeHTTP(c.w, c.r)
	return nil
}
