package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Size  int    `json:"size" description:"How large it is."`
	Color string `json:"color,omitempty"`
}

type WidgetStatus struct {
	Phase string `json:"phase,omitempty"`
}

// patient is how long reads wait for a cache, so that a machine that stands still for a while fails no test.
// Those that are about this time set one of their own.
const patient = time.Hour

func widgetConfig() registry.Config[Widget] {
	return registry.Config[Widget]{
		Engine: engine.Config[Widget]{FreshnessTimeout: patient},
		Kind: registry.Kind{
			Group: "example.com", Version: "v1", Kind: "Widget", Status: true,
			ShortNames: []string{"wd"}, Categories: []string{"all"},
		},
		Columns: []registry.Column[Widget]{{Name: "Size", Type: "integer", Description: "How large.", Value: func(w *Widget) any { return w.Spec.Size }}},
		Fields:  map[string]func(*Widget) string{"spec.color": func(w *Widget) string { return w.Spec.Color }},
		Strategy: registry.Strategy[Widget]{
			Validate: func(_ context.Context, w, _ *Widget) field.ErrorList {
				if w.Spec.Size == 666 {
					panic("the number of the beast")
				}
				if w.Spec.Size < 0 {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), w.Spec.Size, "must not be negative")}
				}
				return nil
			},
		},
	}
}

// server is a server of widgets, and of zones, which have no namespace, with a
// client.
type server struct {
	t       *testing.T
	widgets *registry.Store[Widget]
	handler *serve.Server
	url     string
	client  *http.Client
}

func newServer(t *testing.T, edit ...func(*registry.Config[Widget], *serve.Config)) *server {
	t.Helper()
	widgetCfg := widgetConfig()
	cfg := serve.Config{Logger: slog.New(slog.DiscardHandler)}
	for _, e := range edit {
		e(&widgetCfg, &cfg)
	}
	widgets, err := registry.New(widgetCfg)
	require.NoError(t, err)
	zones, err := registry.New(registry.Config[Widget]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Zone", ClusterScoped: true}, Engine: widgetConfig().Engine,
	})
	require.NoError(t, err)
	cfg.Resources = append(cfg.Resources, widgets, zones)
	handler, err := serve.New(cfg)
	require.NoError(t, err)
	h := httptest.NewUnstartedServer(handler)
	handler.Harden(h.Config)
	h.Start()
	s := &server{t: t, widgets: widgets, handler: handler, url: h.URL, client: h.Client()}
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		require.NoError(t, widgets.Close())
		require.NoError(t, zones.Close())
	})
	return s
}

const (
	allWidgets = "/apis/example.com/v1/widgets"
	inDefault  = "/apis/example.com/v1/namespaces/default/widgets"
)

// answer is what a request got.
type answer struct {
	code   int
	header http.Header
	body   string
}

// do sends a request. headers are pairs of name and value.
func (s *server) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	resp := s.send(s.t.Context(), method, path, body, headers...)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func (s *server) send(ctx context.Context, method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(req)
	require.NoError(s.t, err)
	return resp
}

func (s *server) get(path string, headers ...string) answer { return s.do("GET", path, "", headers...) }

// create makes a widget and returns its revision.
func (s *server) create(name string, size int) string {
	s.t.Helper()
	a := s.do("POST", inDefault, fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"size":"s%d"}},"spec":{"size":%d}}`, name, size, size))
	require.Equal(s.t, 201, a.code, a.body)
	return a.str("metadata.resourceVersion")
}

// cached waits until the cache has every write that was acknowledged, for reads that
// may be stale. It asks again if the engine's FreshnessTimeout was too short for that.
func (s *server) cached() {
	s.t.Helper()
	wait := func() error {
		list, err := s.widgets.Engine().List(s.t.Context(), engine.ListOptions{})
		if err != nil {
			return err
		}
		return s.widgets.Engine().WaitForRevision(s.t.Context(), list.Revision)
	}
	err := wait()
	for errors.Is(err, engine.ErrNotReady) || errors.Is(err, engine.ErrFuture) {
		err = wait()
	}
	require.NoError(s.t, err)
}

// str returns a value of the body by its path.
func (a answer) str(path string) string {
	var at any
	if err := json.Unmarshal([]byte(a.body), &at); err != nil {
		return "no JSON: " + a.body
	}
	for name := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(v) {
				return "<none>"
			}
			at = v[i]
		default:
			return "<none>"
		}
	}
	if n, ok := at.(float64); ok {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprint(at)
}

// frame is an event of a watch.
type frame struct {
	Type   string
	Object json.RawMessage
}

func (f frame) str(path string) string { return answer{body: string(f.Object)}.str(path) }

// String is the type with the name and the revision of the object.
func (f frame) String() string {
	return f.Type + " " + f.str("metadata.name")
}

// watch is a watch over the wire.
type watch struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Reader
}

// watch starts a watch, which must be accepted.
func (s *server) watch(path string, headers ...string) *watch {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	resp := s.send(ctx, "GET", path, "", headers...)
	s.t.Cleanup(func() { resp.Body.Close(); cancel() })
	require.Equal(s.t, 200, resp.StatusCode)
	return &watch{s.t, resp, bufio.NewReader(resp.Body)}
}

// next returns the next frame; ok is false at the end.
func (w *watch) next() (f frame, ok bool) {
	w.t.Helper()
	for {
		line, err := w.in.ReadString('\n')
		if err == io.EOF && line == "" {
			return f, false
		}
		require.NoError(w.t, err)
		if line == "\n" {
			continue
		}
		require.NoError(w.t, json.Unmarshal([]byte(line), &f), line)
		return f, true
	}
}

// change returns the next frame that is no bookmark: of these there may be more than a test makes, such as
// one a second after the start of a watch whose initial state has not been sent by then.
func (w *watch) change() (f frame, ok bool) {
	w.t.Helper()
	f, ok = w.next()
	for ok && f.Type == "BOOKMARK" {
		f, ok = w.next()
	}
	return f, ok
}

// expect requires that the next frames have these types and names.
func (w *watch) expect(want ...string) {
	w.t.Helper()
	for _, one := range want {
		f, ok := w.next()
		require.True(w.t, ok, "the watch ended before %s", one)
		require.Equal(w.t, one, f.String(), "%s", f.Object)
	}
}
