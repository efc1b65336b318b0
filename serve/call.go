package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/serve/internal/answer"
	"github.com/watchmill/watchmill/serve/internal/inflight"
	"github.com/watchmill/watchmill/serve/internal/status"
)

// A request goes through the packages below serve/internal:
//
//	parse ──▶ inflight ──▶ accept, params ──▶ a registry.Resource ──▶ encode ──▶ answer ──▶ transport
//	              └──────────────┴─ status: an error anywhere ───────────────────▶ answer
//	              catalog: documents, made when the kinds change ────────────────▶ answer

// call is one request that is being served.
type call struct {
	*Server
	target
	w        *answer.Writer
	r        *http.Request
	user     User      // the one whose rights and limits apply
	sender   *User     // the one that impersonates user; nil if user has sent the request itself
	watching *watching // nil unless the request is a watch
	began    time.Time
	body     *body // nil if there is none
	failure  error // what the answer says, if that is a Status of an error

	place    inflight.Place
	form     accept.Form // of objects in the answer
	upgrades bool        // the client asks for a WebSocket
	aborted  bool
	using    bool // counted by uses
	entered  bool // counted by running
}

// finish releases what the request has, and calls the hooks.
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
}

// fail answers with a Status.
func (c *call) fail(err error) {
	if c.w.Code() != 0 {
		return // too late: the answer has begun
	}
	c.failure = err
	c.leaveUnread()
	c.answerStatus(status.Of(err, c.req.subject()))
}

// answerStatus answers with a Status.
func (c *call) answerStatus(st *metav1.Status) {
	c.depart()
	status.Write(c.w, st)
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

// logFault logs the error of a request that is a failure of the server or of its storage.
func (c *call) logFault(err error) {
	code := status.ErrorOf(err, c.req.subject()).ErrStatus.Code
	if code == http.StatusGatewayTimeout && c.hung(err) || code >= 500 && code != http.StatusGatewayTimeout {
		c.faults.log(c.log, "a request failed", "verb", c.req.Verb, "path", c.req.Path, "code", code, "error", err)
	}
}

// hung reports whether a request has had all of the time that the server gives it, while its client
// has waited, as when a disk does not answer.
func (c *call) hung(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && c.r.Context().Err() == nil && !c.req.query.Has("timeout")
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
	c.find(resourceName{c.req.Group, c.req.Version, c.req.Resource, c.req.Subresource})
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
	if c.req.reads() {
		if err := c.skipBody(); err != nil {
			return false, err
		}
	}
	if err := c.enter(); err != nil {
		return false, err
	}
	return false, c.authorize(c.req)
}

// authenticate returns the user of a request.
func (c *call) authenticate() error {
	if c.cfg.Authenticate == nil {
		return nil
	}
	user, err := c.cfg.Authenticate(c.r)
	if err != nil {
		if !errors.Is(err, ErrUnauthenticated) {
			c.unknown.log(c.log, "authentication failed", "path", c.req.Path, "from", c.r.RemoteAddr, "error", err)
		}
		if c.w.OfStream() {
			c.w.Header().Set("Connection", "close") // many could be tried at a time, without end
		}
		return apierrors.NewUnauthorized(ErrUnauthenticated.Error())
	}
	c.user = user
	return nil
}

// mayCreate refuses the creation of an object by an update or an apply that the user may not
// create.
func (c *call) mayCreate(context.Context) error {
	create := *c.req
	create.Verb = "create"
	return c.authorize(&create)
}

// authorize refuses a request that the user may not send.
func (c *call) authorize(req *Request) error {
	if c.cfg.Authorize == nil {
		return nil
	}
	if err := c.cfg.Authorize(c.withUser(c.r.Context()), c.user, req); err != nil {
		about := c.req.subject()
		return apierrors.NewForbidden(about.Resource, about.Name, err)
	}
	return nil
}

// route serves the verb.
func (c *call) route() error {
	limit, err := c.req.timeLimit(&c.limits)
	if err != nil {
		return err
	}
	switch {
	case c.req.Path == "/metrics" && c.cfg.MetricsHandler != nil:
		return c.metricsPage(limit)
	case !c.req.IsResource():
		return c.kinds.Load().documents().serve(c)
	case c.resource == nil:
		return status.NotServed()
	}
	if c.info.Deprecated != "" {
		c.w.Warn(c.info.Deprecated)
	}
	switch {
	case !c.hasPath():
		return status.NotServed()
	case !c.hasVerb():
		return c.methodNotAllowed()
	}
	if err := c.negotiate(); err != nil {
		return err
	}
	if c.req.Verb == "watch" {
		c.watching = newWatching(c)
		return nil
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), limit)
	defer cancel()
	return c.serveVerb(c.withUser(ctx))
}

// negotiate finds the form of objects that the client prefers.
func (c *call) negotiate() (err error) {
	if c.req.Verb == "watch" {
		c.form, err = accept.Watch(c.r)
	} else {
		c.form, err = accept.Objects(c.r)
	}
	return err
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
