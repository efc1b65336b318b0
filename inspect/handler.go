package inspect

import (
	"crypto/rand"
	_ "embed" // embeds the page
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/internal/loopback"
	"github.com/watchmill/watchmill/usercode"
)

//go:embed page.html
var page string

const (
	// period is the time between two states of a stream.
	period = time.Second
	// writeTimeout is how long a client may take to read one of them.
	writeTimeout = 10 * time.Second
)

// Options configures a handler.
type Options struct {
	// Engines are the hosts whose engines are shown, none of them nil.
	Engines []*engine.Host
	// Informers and Controllers are shown, too, none of them nil.
	Informers   []informer.Observed
	Controllers []controller.Observed
	// Hosts are names, without a port. Requests whose Host header has one of them are
	// answered to other machines, too: those of a proxy that authorises requests. Case
	// does not matter. Requests of localhost and loopback addresses are answered to this
	// machine alone, unless they are among these.
	Hosts []string
}

// Handler returns a handler of the page for the engines on the hosts. It can be mounted
// under any path, such as /debug/watchmill/. It panics as [Options.Handler] does.
func Handler(hosts ...*engine.Host) http.Handler { return Options{Engines: hosts}.Handler() }

// Handler returns a handler as the options say. It panics with a [*usercode.ConfigError] if a
// host is nil or zero, or another part nil, which otherwise every request would do.
func (o Options) Handler() http.Handler {
	if err := o.validate(); err != nil {
		panic(err)
	}
	return &handler{Options: o}
}

// validate returns a [*usercode.ConfigError] for the first part that is nil, or a zero host.
func (o Options) validate() error {
	missing := func(field string, i int, give string) error {
		return &usercode.ConfigError{Field: fmt.Sprintf("%s[%d]", field, i), Problem: "is " + give + " has returned"}
	}
	for i, h := range o.Engines {
		if h == nil || engine.ValidateHost("Engines", h) != nil {
			return missing("Engines", i, "nil or a zero Host; give one that engine.NewHost")
		}
	}
	for i, shown := range o.Informers {
		if shown == nil {
			return missing("Informers", i, "nil; give one that informer.New")
		}
	}
	for i, shown := range o.Controllers {
		if shown == nil {
			return missing("Controllers", i, "nil; give one that controller.New")
		}
	}
	return nil
}

// handler serves what its options say.
type handler struct {
	Options
	// shutdowns has for each [http.Server] that has asked for a stream the channel that is closed when it
	// shuts down.
	shutdowns sync.Map
}

// ServeHTTP serves the page, a state or a stream of states.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "inspect only reads: use GET", http.StatusMethodNotAllowed)
	case !h.allows(r):
		http.Error(w, "only this machine is answered: use localhost there, or name the host of a server that authorises requests in inspect.Options.Hosts", http.StatusForbidden)
	case strings.HasSuffix(r.URL.Path, "/state"):
		head.Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(h.State()) // fails only if the client has gone
	case strings.HasSuffix(r.URL.Path, "/events"):
		h.stream(w, r)
	default:
		h.page(w)
	}
}

// allows reports whether the request is answered: its Host header must have one of Hosts, or be
// of loopback, and the request come from there. The header alone says nothing, since a client
// writes what it likes into it.
func (h *handler) allows(r *http.Request) bool {
	host := hostOf(r.Host)
	if slices.ContainsFunc(h.Hosts, func(name string) bool { return strings.EqualFold(name, host) }) {
		return true
	}
	return loopback.Is(host) && fromHere(r.RemoteAddr)
}

// hostOf returns the host of an address with or without a port.
func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return strings.Trim(addr, "[]")
}

// fromHere reports whether a request from that address comes from this machine: from loopback, or
// from a Unix socket, which has a path or no name. An address without a port is no such name: it
// comes from middleware, which takes it from the header of a proxy.
func fromHere(remote string) bool {
	return remote == "" || remote[0] == '@' || remote[0] == '/' || loopback.Is(hostOf(remote))
}

// page serves the page. The browser runs no script and applies no style but the page's
// own.
func (h *handler) page(w http.ResponseWriter) {
	nonce := rand.Text()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; style-src 'nonce-"+nonce+
		"'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_, _ = strings.NewReplacer("NONCE", nonce).WriteString(w, page) // fails only if the client has gone
}

// stream sends a state per second until the client is gone or stops reading, or the server shuts down, which
// would wait for the stream.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("X-Accel-Buffering", "no") // for nginx, which would pass a state on with later ones
	head.Set("Cache-Control", "no-store, no-transform")
	out := http.NewResponseController(w)
	tick := time.NewTicker(period)
	defer tick.Stop()
	shutdown := h.shutdownOf(r)
	for r.Method == http.MethodGet {
		state, err := json.Marshal(h.State())
		if err != nil {
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every server has one
		if _, err := w.Write(slices.Concat([]byte("data: "), state, []byte("\n\n"))); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-shutdown:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// shutdownOf returns a channel that is closed when the server of the request shuts down; nil if that is not known.
func (h *handler) shutdownOf(r *http.Request) <-chan struct{} {
	server, known := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !known {
		return nil
	}
	begun := make(chan struct{})
	of, found := h.shutdowns.LoadOrStore(server, begun)
	if !found {
		server.RegisterOnShutdown(func() { close(begun) })
	}
	return of.(chan struct{})
}
