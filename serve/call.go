package serve

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/serve/internal/answer"
	"github.com/watchmill/watchmill/serve/internal/inflight"
	"github.com/watchmill/watchmill/serve/internal/status"
)

// A request goes through these functions, from top to bottom; an error of any of them is answered by fail, and a panic
// by contain:
//
//	ServeHTTP ─┬─▶ serve ─┬─▶ admit ──▶ guard, parse, find, health, authenticate, impersonate, skipBody, enter, authorize
//	           │          ├─▶ route ──▶ a document, the page of metrics, or a verb
//	           │          └─▶ start and begin, if it is a watch
//	           ├─▶ run, if there is a watch now
//	           └─▶ finish ──▶ audit
//
// and through the packages below serve/internal:
//
//	parse ──▶ inflight ──▶ accept, params ──▶ a registry.Resource ──▶ encode ──▶ answer ──▶ transport
//	              └──────────────┴─ status: an error anywhere ───────────────────▶ answer
//	              catalog: documents, made when the kinds change ────────────────▶ answer

// call is one request that is being served.
type call struct {
	*Server
	target
	identity
	r        *http.Request
	w        *answer.Writer
	began    time.Time
	body     *body       // nil if there is none
	watching *watching   // nil unless the request is a watch
	failure  error       // what the answer says, if that is a Status of an error
	form     accept.Form // of objects in the answer
	upgrades bool        // the client asks for a WebSocket
	aborted  bool        // the answer could not be completed

	// What finish gives back, besides the watch.

	place   inflight.Place // the limiter's
	using   bool           // counted by uses
	entered bool           // counted by running
}

// The values of headers that all answers share, to save memory for watches. They are replaced,
// never changed.
var (
	notCached  = []string{"no-cache, private"}
	notSniffed = []string{"nosniff"}
	asJSON     = []string{accept.JSON}
	// A watch passes proxies at once. Some collect what they pass on, and nginx does not if the answer says so. Some
	// compress it, and would hold back the end of each event until there is another.
	notChanged  = []string{"no-cache, private, no-transform"}
	notBuffered = []string{"no"}
)

// ServeHTTP serves one request. A panic in functions of the kind, and in those that decide about
// the request, such as [Config].Authenticate, is answered with 500, and logged; once the answer
// has begun it is cut off. A panic in a function that only reports what has happened,
// [Config].Audit and [Config].Metrics, is logged, and changes no answer. A function that ends its
// goroutine, as t.FailNow does, cuts the request off, which is logged.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{
		Server: s, w: answer.New(w, s.limits.WriteStall, r.ProtoMajor >= 2),
		r: r, body: newBody(r), target: target{notFound, &Request{Path: r.URL.Path}}, identity: identity{user: Anonymous}, began: time.Now(),
	}
	s.counts.requests.Add(1)
	s.counts.running.Add(1)
	handedOver, returned := false, false
	defer func() {
		if !handedOver {
			c.finish()
		}
	}()
	defer c.contain(&returned)
	c.prepare()
	defer c.w.Release()
	if c.mayWatch() {
		c.serveAside()
	} else {
		c.serve()
	}
	c.w.End()
	switch watch := c.watching; {
	case watch == nil || !watch.begun:
		c.w.Finish()
	case watch.takeover.hasTaken():
		handedOver = true
		go watch.runTaken()
	default:
		watch.run()
	}
	returned = true
}

// prepare sets the headers that all answers have, and the times in which the client has to read and to send over
// HTTP/1.1, where net/http writes and reads by itself.
func (c *call) prepare() {
	h := c.w.Header()
	h["Cache-Control"], h["X-Content-Type-Options"] = notCached, notSniffed
	if !c.w.OfStream() {
		c.w.Extend() // for 100 Continue, which is sent before the answer begins
		if c.body != nil {
			c.mustArrive() // what the server leaves is read, too
		}
	}
}

// finish gives back what the request has, what it took last first, and calls the hooks.
func (c *call) finish() {
	defer c.counts.running.Add(-1)
	defer c.exit()
	defer c.audit()
	defer c.limiter.Leave(c)
	defer c.leaveUse()
	if c.watching != nil {
		c.watching.stop()
	}
}

// contain answers a panic with 500 and an id under which the log has the stack. Without a panic, a function
// that has not returned was ended by runtime.Goexit: its goroutine can answer nothing any more, and the
// client sees the connection, or the stream, break off.
func (c *call) contain(returned *bool) {
	failure := recover()
	switch {
	case failure == nil && *returned:
		return
	case failure == nil:
		c.aborted = true
		c.log.Error("a request was cut off, since runtime.Goexit has ended its goroutine, as t.FailNow does", "path", c.req.Path, "stack", string(debug.Stack()))
		return
	case failure == http.ErrAbortHandler:
		c.aborted = true
		panic(failure)
	}
	id := rand.String(8)
	c.log.Error("a request panicked", "id", id, "path", c.req.Path, "panic", failure, "stack", string(debug.Stack()))
	if c.w.Code() != 0 {
		c.aborted = true
		panic(http.ErrAbortHandler) // so that the client does not take a part of the answer for all of it
	}
	c.fail(apierrors.NewInternalError(fmt.Errorf("a panic, with the id %s in the server's log", id)))
	c.w.Finish()
}

// serve answers the request, except for the events of a watch. Its steps return before the next
// begins, since the stack of a watch's goroutine keeps the size of its deepest call.
func (c *call) serve() {
	answered, err := c.admit()
	if err == nil && !answered {
		err = c.route()
	}
	if err == nil && c.watching != nil {
		err = c.watching.start()
		c.leaveUse() // what the watch still needs lasts as long as its store is open
	}
	if err == nil && c.watching != nil {
		err = c.watching.begin()
	}
	if err != nil {
		c.logFault(err)
		c.fail(err)
	}
}

// admit does all that comes before the request's verb. It reports whether the request was
// answered, as a health check is.
func (c *call) admit() (answered bool, err error) {
	if err := c.guard(); err != nil {
		return false, err
	}
	if err := c.req.parse(c.r); err != nil {
		return false, err
	}
	c.find()
	if c.health() {
		return true, nil
	}
	if c.draining.Load() >= refusing {
		return false, c.refuseDraining()
	}
	if err := c.authenticate(); err != nil {
		return false, err
	}
	if err := c.impersonate(); err != nil {
		return false, err
	}
	if err := c.skipBody(); err != nil {
		return false, err
	}
	if err := c.enter(); err != nil {
		return false, err
	}
	return false, c.authorize(c.req)
}

// route serves the verb, except for the rest of a watch.
func (c *call) route() error {
	limit, err := c.req.timeLimit(&c.limits)
	switch {
	case err != nil:
		return err
	case c.req.Path == "/metrics" && c.cfg.MetricsHandler != nil:
		return c.metricsPage(limit)
	case !c.req.IsResource():
		return c.kinds.Load().documents().serve(c)
	case c.resource == nil:
		return status.NotServed()
	}
	if err := c.checkTarget(); err != nil {
		return err
	}
	if c.req.Verb == "watch" {
		if c.form, err = accept.Watch(c.r); err != nil {
			return err
		}
		c.watching = newWatching(c)
		return nil
	}
	if c.form, err = accept.Objects(c.r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), limit)
	defer cancel()
	return c.serveVerb(c.withUser(ctx))
}

// checkTarget refuses paths and verbs that the resource does not have, and warns of one that is deprecated.
func (c *call) checkTarget() error {
	if c.info.Deprecated != "" {
		c.w.Warn(c.info.Deprecated)
	}
	switch {
	case !c.hasPath():
		return status.NotServed()
	case !c.hasVerb():
		return c.methodNotAllowed()
	}
	return nil
}

// serveVerb serves every verb but watch.
func (c *call) serveVerb(ctx context.Context) error {
	switch c.req.Verb {
	case "get":
		return c.get(ctx)
	case "list":
		return c.list(ctx)
	case "create":
		return c.create(ctx)
	case "update":
		return c.update(ctx)
	case "patch":
		return c.patch(ctx)
	case "delete":
		return c.delete(ctx)
	case "deletecollection":
		return c.deleteCollection(ctx)
	}
	return c.methodNotAllowed()
}
