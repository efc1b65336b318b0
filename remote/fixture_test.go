package remote_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store"
)

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Size int `json:"size"`
}

type WidgetStatus struct {
	Phase string `json:"phase,omitempty"`
}

// widgets returns the kind, with a rule that counts its calls.
func widgets(validated *atomic.Int64) registry.Config[Widget] {
	return registry.Config[Widget]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Status: true},
		Strategy: registry.Strategy[Widget]{
			Default: func(w *Widget) {
				if w.Spec.Size == 0 {
					w.Spec.Size = 7
				}
			},
			Validate: func(_ context.Context, w, _ *Widget) field.ErrorList {
				validated.Add(1)
				if w.Spec.Size < 0 {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), w.Spec.Size, "must not be negative")}
				}
				return nil
			},
			Warn: func(_ context.Context, w, _ *Widget) []string {
				if w.Spec.Size > 1000 {
					return []string{"this is large"}
				}
				return nil
			},
		},
	}
}

// server is a store of widgets that is served.
type server struct {
	t         *testing.T
	store     *registry.Store[Widget]
	url       string
	validated atomic.Int64
	lists     atomic.Int64 // lists of more than one object that were asked for
	questions atomic.Int64 // lists of one object, for the newest revision
	watches   atomic.Int64
}

// patience is how long tests wait for what must happen. A machine may be slow.
const patience = 5 * time.Minute

// newServer serves widgets in memory, or by edit elsewhere. Its reads wait long for a
// cache that is behind.
func newServer(t *testing.T, edit ...func(*registry.Config[Widget])) *server {
	t.Helper()
	s := &server{t: t}
	cfg := widgets(&s.validated)
	cfg.Engine.FreshnessTimeout = patience
	for _, e := range edit {
		e(&cfg)
	}
	var err error
	s.store, err = registry.New(cfg)
	require.NoError(t, err)
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{s.store}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Get("watch") != "":
			s.watches.Add(1)
		case r.Method == http.MethodGet && q.Get("limit") != "1":
			s.lists.Add(1)
		case r.Method == http.MethodGet:
			s.questions.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	s.url = h.URL
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		require.NoError(t, s.store.Close())
	})
	return s
}

// backendAt returns the backend of the widgets at a URL, with short pauses.
func backendAt(t *testing.T, url string, edit ...func(*remote.Config)) *remote.Backend {
	t.Helper()
	format, err := registry.FormatOf(widgets(new(atomic.Int64)))
	require.NoError(t, err)
	cfg := remote.Config{URL: url, MinPause: time.Millisecond, MaxPause: 10 * time.Millisecond}
	for _, e := range edit {
		e(&cfg)
	}
	b, err := remote.New(format, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// replica serves what is at a URL.
func replica(t *testing.T, url string, edit ...func(*remote.Config)) *server {
	t.Helper()
	b := backendAt(t, url, edit...)
	return newServer(t, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend = b })
}

func widget(name string, size int) Widget {
	return Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: WidgetSpec{Size: size}}
}

func (s *server) create(name string, size int) *engine.Object[Widget] {
	s.t.Helper()
	o, err := s.store.Create(s.t.Context(), widget(name, size), registry.WriteOptions{})
	require.NoError(s.t, err)
	return o
}

func (s *server) resize(name string, size int) *engine.Object[Widget] {
	s.t.Helper()
	o, _, err := s.store.Update(s.t.Context(), "default/"+name, func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Spec.Size = size
		return w, nil
	}, registry.WriteOptions{})
	require.NoError(s.t, err)
	return o
}

// send sends a request for widgets in the namespace default over the wire; path is what follows
// their name. It returns the answer with its body, which has been read.
func (s *server) send(method, path, media, body string) (*http.Response, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/apis/example.com/v1/namespaces/default/widgets"+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", media)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp, string(text)
}

// follow collects events of a watch until one has the revision.
func follow(t *testing.T, e *engine.Engine[Widget], from, until store.Revision) []engine.Event[Widget] {
	t.Helper()
	require.NoError(t, e.WaitForRevision(t.Context(), from))
	w, err := e.Watch(t.Context(), engine.WatchOptions{From: from})
	require.NoError(t, err)
	defer w.Stop()
	var all []engine.Event[Widget]
	for len(all) == 0 || all[len(all)-1].Revision < until {
		events, err := w.Next(t.Context())
		require.NoError(t, err)
		all = append(all, events...)
	}
	return all
}

// proxy passes connections on to a server, and cuts them.
type proxy struct {
	url    string
	target string
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	cuts   int
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{url: "http://" + l.Addr().String(), target: target[len("http://"):], conns: map[net.Conn]struct{}{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.pass(in) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		p.turn("http://") // to nothing
		all.Wait()
	})
	return p
}

func (p *proxy) pass(in net.Conn) {
	defer in.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	out, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer out.Close()
	if !p.add(in, target) {
		return
	}
	defer p.remove(in)
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(out, in); out.Close() })
	both.Go(func() { _, _ = io.Copy(in, out); in.Close() })
	both.Wait()
}

func (p *proxy) remove(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// turn leads new connections to another server, and cuts the present ones.
func (p *proxy) turn(target string) {
	p.mu.Lock()
	p.target = target[len("http://"):]
	p.mu.Unlock()
	p.cut()
}

// add notes a connection to a target, unless new ones lead elsewhere by now.
func (p *proxy) add(c net.Conn, target string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target != target {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

// cut closes every connection, in the middle of whatever it carries.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
		p.cuts++
	}
}
