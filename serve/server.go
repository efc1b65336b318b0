package serve

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
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
		cfg: cfg, limits: cfg.Limits.withDefaults(),
		log:   usercode.Logger(cmp.Or(cfg.Logger, slog.Default()), func(*usercode.PanicError) {}),
		hosts: map[string]bool{}, origins: http.NewCrossOriginProtection(),
		resources: map[resourceName]served{},
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
	kinds := kindNames{}
	for _, provider := range s.cfg.Resources {
		for _, r := range provider.Resources() {
			info := r.Info()
			name := resourceName{info.Kind.Group, info.Kind.Version, info.Kind.Plural, info.Subresource}
			if s.resources[name].resource != nil {
				return &engine.ConfigError{Field: "Resources", Problem: fmt.Sprintf("has %s/%s twice", info.Kind.GroupResource(), info.Kind.Version)}
			}
			s.resources[name] = served{r, info}
			if err := kinds.add(info); err != nil {
				return err
			}
		}
	}
	if len(s.resources) == 0 {
		return &engine.ConfigError{Field: "Resources", Problem: "is empty; give what registry.New returns"}
	}
	return nil
}

// kindNames are the resources of the names that kinds and their lists have.
type kindNames map[schema.GroupVersionKind]string

// add refuses a kind whose name, or that of its list, another one has: clients could not tell
// the objects of the two apart.
func (k kindNames) add(info *registry.Info) error {
	if info.Subresource != "" {
		return nil
	}
	for _, suffix := range []string{"", "List"} {
		name := info.Kind.GroupVersionKind()
		name.Kind += suffix
		if other, taken := k[name]; taken {
			return &engine.ConfigError{Field: "Resources", Problem: fmt.Sprintf(
				"has %s and %s, which both have the kind %s in %s; give one of them another name", other, info.Kind.Plural, name.Kind, name.GroupVersion())}
		}
		k[name] = info.Kind.Plural
	}
	return nil
}

// The values of headers that all answers share, to save memory for watches. They are replaced,
// never changed.
var (
	notCached  = []string{"no-cache, private"}
	notSniffed = []string{"nosniff"}
	asJSON     = []string{jsonType}
)

// ServeHTTP serves one request. A panic in functions of the kind, and in those that decide about
// the request, such as [Config].Authenticate, is answered with 500, and logged; once the answer
// has begun it is cut off. A panic in a function that is only told what has happened,
// [Config].Audit and [Config].Metrics, is logged, and changes no answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{
		Server: s, w: &response{ResponseWriter: w, stall: s.limits.WriteStall, ofStream: r.ProtoMajor >= 2},
		r: r, user: Anonymous, req: &Request{Path: r.URL.Path}, began: time.Now(),
	}
	s.counts.requests.Add(1)
	handedOver := false
	defer func() {
		if !handedOver {
			c.finish()
		}
	}()
	defer c.contain()
	c.countBody()
	h := w.Header()
	h["Cache-Control"], h["X-Content-Type-Options"] = notCached, notSniffed
	if !c.w.ofStream {
		c.w.extend() // a connection keeps the deadline of the request before
	}
	defer c.w.leave()
	defer c.w.release()
	if c.mayWatch() {
		c.serveAside()
	} else {
		c.serve()
	}
	if c.w.packing != nil {
		c.w.packing.end()
	}
	switch watch := c.watching; {
	case watch == nil || !watch.begun:
	case watch.taken != nil:
		handedOver = true
		go watch.runTaken()
	default:
		watch.run()
	}
}
