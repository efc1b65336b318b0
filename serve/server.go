package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// Server serves resources; it is an http.Handler, safe for concurrent use. Make one with
// [New]. It starts no goroutine but those of watches that take over their connections; see
// [Server.Harden].
type Server struct {
	cfg       Config
	limits    Limits
	log       *slog.Logger
	hosts     map[string]bool
	origins   *http.CrossOriginProtection
	resources map[resourceName]served
	documents *documents
	encodings *encodings
	compress  *compressor // nil: answers are not compressed
	inFlight  *inFlight
	draining  atomic.Int32 // serving, unready or refusing
	counts    counters
}

// resourceName is the name of a resource in a path.
type resourceName struct{ group, version, resource, subresource string }

// served is a resource with its description, which requests share.
type served struct {
	resource registry.Resource
	info     *registry.Info
}

// New returns a server. An error is an [*engine.ConfigError] that names the field.
func New(cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, limits: cfg.Limits.withDefaults(), log: cfg.Logger,
		hosts: map[string]bool{}, origins: http.NewCrossOriginProtection(),
		resources: map[resourceName]served{},
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	for _, host := range cfg.Hosts {
		s.hosts[strings.ToLower(host)] = true
	}
	if err := s.index(); err != nil {
		return nil, err
	}
	s.documents = newDocuments(s)
	s.encodings = newEncodings(s.limits.EncodingBytes)
	if cfg.CompressAbove > 0 {
		s.compress = newCompressor(cfg.CompressAbove)
	}
	s.inFlight = newInFlight(&s.limits)
	return s, nil
}

// index registers the resources by name.
func (s *Server) index() error {
	for _, provider := range s.cfg.Resources {
		for _, r := range provider.Resources() {
			info := r.Info()
			name := resourceName{info.Kind.Group, info.Kind.Version, info.Kind.Plural, info.Subresource}
			if s.resources[name].resource != nil {
				return &engine.ConfigError{Field: "Resources", Problem: fmt.Sprintf("has %s.%s/%s twice", name.resource, name.group, name.version)}
			}
			s.resources[name] = served{r, info}
		}
	}
	if len(s.resources) == 0 {
		return &engine.ConfigError{Field: "Resources", Problem: "is empty; give what registry.New returns"}
	}
	return nil
}

// call is one request that is being served.
type call struct {
	*Server
	w        *response
	r        *http.Request
	req      *Request
	user     User
	shape    shape
	lean     bool // objects are sent without managed fields
	resource registry.Resource
	info     *registry.Info
	warnings warnings
	upgrades bool  // the client asks for messages
	end      error // of a watch
	leave    func()
	watching *watching // nil unless the request is a watch

	began   time.Time
	read    *countedBody // nil if there is no body, or no metrics
	refused Limit
	aborted bool
}

// response records the status and the size of an answer, and whether its client stalled.
type response struct {
	http.ResponseWriter
	stall   time.Duration // how long a client may read nothing
	code    int
	bytes   int64
	stalled bool // the client read nothing for too long
	// ofStream: deadlines are those of a stream of HTTP/2, which they end even if nothing
	// is being written.
	ofStream bool
	// packing is the answer's compression, nil if there is none.
	packing *packing
}

func (r *response) WriteHeader(code int) {
	r.begin(code)
	r.ResponseWriter.WriteHeader(code)
}

// begin records the status. The client's time to read the answer starts now, however long
// the answer took to make.
func (r *response) begin(code int) {
	if r.code == 0 {
		r.code = code
		r.extend()
	}
}

// extend gives the client the time of [Limits].WriteStall to read what is written next.
func (r *response) extend() { r.endAt(time.Now().Add(r.stall)) }

// endAt sets the deadline of writes. Not every ResponseWriter has deadlines; then it has no
// effect.
func (r *response) endAt(at time.Time) {
	_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(at)
}

// rest lets a stream last while nothing is written, until extend.
func (r *response) rest() {
	if r.ofStream {
		r.endAt(time.Time{})
	}
}

func (r *response) Write(p []byte) (int, error) {
	r.begin(http.StatusOK)
	if r.packing != nil {
		return r.packing.write(p)
	}
	return r.send(p)
}

// send writes to the connection, past any compression.
func (r *response) send(p []byte) (int, error) {
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, r.note(err)
}

// release ends the compression of an answer that was broken off.
func (r *response) release() {
	if r.packing != nil {
		r.packing.release()
	}
}

// FlushError implements flushing for http.ResponseController.
func (r *response) FlushError() error {
	return r.note(http.NewResponseController(r.ResponseWriter).Flush())
}

// note records whether a write failed because the client read nothing.
func (r *response) note(err error) error {
	r.stalled = r.stalled || errors.Is(err, os.ErrDeadlineExceeded)
	return err
}

// Unwrap returns the ResponseWriter, for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// ServeHTTP serves one request. It contains a panic in that.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{
		Server: s, w: &response{ResponseWriter: w, stall: s.limits.WriteStall, ofStream: r.ProtoMajor >= 2},
		r: r, user: Anonymous, req: &Request{Path: r.URL.Path}, began: time.Now(),
	}
	s.counts.requests.Add(1)
	elsewhere := false
	defer func() {
		if !elsewhere {
			c.over()
		}
	}()
	defer c.contain()
	c.countBody()
	h := w.Header()
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	if !c.w.ofStream {
		c.w.extend() // a connection keeps the deadline of the request before
	}
	defer c.w.release()
	c.serve()
	if c.w.packing != nil {
		c.w.packing.end()
	}
	switch watch := c.watching; {
	case watch == nil || !watch.begun:
	case watch.taken != nil:
		elsewhere = true
		go watch.runTaken()
	default:
		watch.run()
	}
}

// over releases what the request has, and calls the hooks.
func (c *call) over() {
	defer c.audit()
	if c.leave != nil {
		defer c.leave()
	}
	if c.watching != nil {
		c.watching.stop()
	}
}

// audit calls the hooks with the request that is over.
func (c *call) audit() {
	if c.cfg.Metrics != nil {
		c.cfg.Metrics.Served(c.measured())
	}
	if c.cfg.Audit != nil {
		c.cfg.Audit(c.r.Context(), Audited{User: c.user, Request: c.req, Code: c.w.code, Began: c.began, Took: time.Since(c.began), End: c.end})
	}
}

// contain answers a panic with 500 and an id under which the log has the stack.
func (c *call) contain() {
	failure := recover()
	if failure == nil {
		return
	}
	if failure == http.ErrAbortHandler {
		c.aborted = true
		panic(failure)
	}
	id := rand.String(8)
	c.log.Error("a request panicked", "id", id, "path", c.req.Path, "panic", failure, "stack", string(debug.Stack()))
	if c.w.code != 0 {
		c.aborted = true
		panic(http.ErrAbortHandler) // so that the client does not take a part of the answer for all of it
	}
	c.fail(apierrors.NewInternalError(fmt.Errorf("a panic, with the id %s in the server's log", id)))
}

// fail answers with a Status.
func (c *call) fail(err error) {
	if c.w.code != 0 {
		return // too late: the answer has begun
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		c.refused = LimitBody
	}
	c.warnings.flush(c.w.Header())
	writeStatus(c.w, statusOf(err, c.subject()))
}

// subject is what an error of this call is about.
func (c *call) subject() subject {
	return subject{schema.GroupResource{Group: c.req.Group, Resource: c.req.Resource}, c.req.Name, c.req.Verb}
}

// serve answers the request, except for the events of a watch. Its steps do not call each
// other: the stack of a watch stays as large as the deepest of them needs.
func (c *call) serve() {
	answered, err := c.admit()
	if err == nil && !answered {
		err = c.route()
	}
	if err == nil && c.watching != nil {
		err = c.watching.start()
	}
	if err == nil && c.watching != nil {
		err = c.watching.begin()
	}
	if err != nil {
		c.fail(err)
	}
}

// admit does all that comes before the request's verb. answered: there is nothing more to
// do.
func (c *call) admit() (answered bool, err error) {
	if err := c.guard(); err != nil {
		return false, err
	}
	req, err := parse(c.r)
	if err != nil {
		return false, err
	}
	c.req = req
	found := c.resources[resourceName{req.Group, req.Version, req.Resource, req.Subresource}]
	c.resource, c.info = found.resource, found.info
	if c.documents.health(c) {
		return true, nil
	}
	if c.draining.Load() >= refusing {
		c.w.Header().Set("Connection", "close")
		c.refused = LimitDraining
		return false, tooMany("the server is shutting down")
	}
	if err := c.authenticate(); err != nil {
		return false, err
	}
	if c.leave, err = c.inFlight.enter(c); err != nil {
		return false, err
	}
	return false, c.authorize()
}

// authenticate returns the user of a request.
func (c *call) authenticate() error {
	for name := range c.r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("impersonation is not supported"))
		}
	}
	if c.cfg.Authenticate == nil {
		return nil
	}
	user, err := c.cfg.Authenticate(c.r)
	if err != nil {
		return apierrors.NewUnauthorized(ErrUnauthenticated.Error())
	}
	c.user = user
	return nil
}

// authorize refuses a request that the user may not send.
func (c *call) authorize() error {
	if c.cfg.Authorize == nil {
		return nil
	}
	asked := []*Request{c.req}
	if c.req.Verb == "update" && c.createsOnUpdate() {
		create := *c.req
		create.Verb = "create"
		asked = append(asked, &create)
	}
	for _, req := range asked {
		if err := c.allow(req); err != nil {
			return err
		}
	}
	return nil
}

// allow calls Authorize for req.
func (c *call) allow(req *Request) error {
	if c.cfg.Authorize == nil {
		return nil
	}
	if err := c.cfg.Authorize(c.r.Context(), c.user, req); err != nil {
		about := c.subject()
		return apierrors.NewForbidden(about.resource, about.name, err)
	}
	return nil
}

// createsOnUpdate reports whether an update of the resource may create.
func (c *call) createsOnUpdate() bool {
	return c.info != nil && c.info.CreateOnUpdate
}

// route serves the verb.
func (c *call) route() error {
	switch {
	case c.req.Path == "/metrics" && c.cfg.MetricsHandler != nil:
		return c.metricsPage()
	case !c.req.IsResource():
		return c.documents.serve(c)
	case c.resource == nil:
		return notServed()
	}
	if err := c.checkScope(); err != nil {
		return err
	}
	var err error
	if c.shape, c.lean, err = negotiate(c.r, false, c.req.Verb == "watch"); err != nil {
		return err
	}
	if c.req.Verb == "watch" {
		c.watching = newWatching(c)
		return nil
	}
	limit := c.limits.ReadTimeout
	if !c.req.reads() {
		limit = c.limits.WriteTimeout
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), limit)
	defer cancel()
	return c.serveVerb(ctx)
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
	return methodNotAllowed(c)
}

func methodNotAllowed(c *call) error {
	about := c.subject()
	return apierrors.NewMethodNotSupported(about.resource, strings.ToLower(c.r.Method))
}

// checkScope refuses verbs that the resource does not have, and paths that do not fit the
// resource's scope.
func (c *call) checkScope() error {
	allowed := false
	for _, verb := range c.info.Verbs {
		allowed = allowed || verb == c.req.Verb
	}
	onOne := c.req.Verb != "list" && c.req.Verb != "watch" && c.req.Verb != "deletecollection"
	namespaced := !c.info.Kind.ClusterScoped
	switch {
	case namespaced && onOne && c.req.Namespace == "", !namespaced && c.req.Namespace != "":
		return notServed()
	case !allowed, c.req.Verb == "create" && c.req.Name != "", onOne && c.req.Verb != "create" && c.req.Name == "":
		return methodNotAllowed(c)
	}
	return nil
}

// key returns the key of the object that the request names.
func (c *call) key() string { return c.info.Kind.Key(c.req.Namespace, c.req.Name) }
