package websocket_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	library "github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/pipenet"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/websocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

var widgetKind = registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}

// server is a server of widgets.
type server struct {
	t       *testing.T
	widgets *registry.Store[Widget]
	handler *serve.Server
	url     string
	client  *http.Client
	ended   chan serve.Audited // the watches that have ended
}

// newServer returns a server that listens.
func newServer(t *testing.T, options websocket.Options, edit ...func(*registry.Config[Widget], *serve.Config)) *server {
	t.Helper()
	s := newHandler(t, options, edit...)
	h := httptest.NewServer(s.handler)
	s.url, s.client = h.URL, http.DefaultClient
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, s.widgets.Close()) // which ends every watch
		h.Close()
	})
	return s
}

// inBubble runs a test in a bubble of virtual time, with a server that is reached through pipes, which hold nothing
// of what is sent.
func inBubble(t *testing.T, options websocket.Options, test func(t *testing.T, s *server), edit ...func(*registry.Config[Widget], *serve.Config)) {
	synctest.Test(t, func(t *testing.T) {
		s := newHandler(t, options, edit...)
		p := pipenet.Listen()
		h := &http.Server{Handler: s.handler}
		ended := make(chan error, 1)
		go func() { ended <- h.Serve(p) }()
		s.url = "http://localhost"
		s.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) }}}
		t.Cleanup(func() {
			require.NoError(t, s.widgets.Close()) // which ends every watch
			require.NoError(t, h.Close())
			require.ErrorIs(t, <-ended, http.ErrServerClosed)
		})
		test(t, s)
	})
}

// newHandler returns a server that does not listen yet.
func newHandler(t *testing.T, options websocket.Options, edit ...func(*registry.Config[Widget], *serve.Config)) *server {
	t.Helper()
	s := &server{t: t, ended: make(chan serve.Audited, 100)}
	upgrader, err := websocket.New(options)
	require.NoError(t, err)
	// Reads wait for the cache for as long as a machine may stand still.
	kind := registry.Config[Widget]{Kind: widgetKind, Engine: engine.Config[Widget]{FreshnessTimeout: time.Hour}}
	cfg := serve.Config{WebSocket: upgrader, Logger: slog.New(slog.DiscardHandler)}
	cfg.Audit = func(_ context.Context, e serve.Audited) {
		if e.Request.Verb == "watch" {
			s.ended <- e
		}
	}
	for _, e := range edit {
		e(&kind, &cfg)
	}
	s.widgets, err = registry.New(kind)
	require.NoError(t, err)
	cfg.Resources = []serve.Provider{s.widgets}
	s.handler, err = serve.New(cfg)
	require.NoError(t, err)
	return s
}

const widgets = "/apis/example.com/v1/namespaces/default/widgets"

// create makes a widget of that many bytes, and returns its revision.
func (s *server) create(name string, bytes int) string {
	s.t.Helper()
	o, err := s.widgets.Create(s.t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "default", Annotations: map[string]string{"pad": strings.Repeat("x", bytes)},
	}}, registry.WriteOptions{})
	require.NoError(s.t, err)
	return o.Revision.String()
}

// client is a client's side of a watch.
type client struct {
	t    *testing.T
	conn *library.Conn
	ctx  context.Context
}

// dial starts a watch. headers are pairs of name and value.
func (s *server) dial(query string, headers ...string) (*client, *http.Response, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	options := &library.DialOptions{HTTPClient: s.client, HTTPHeader: http.Header{}}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Sec-WebSocket-Protocol" {
			options.Subprotocols = append(options.Subprotocols, headers[i+1])
			continue
		}
		if headers[i] == "Host" {
			options.Host = headers[i+1]
		}
		options.HTTPHeader.Set(headers[i], headers[i+1])
	}
	conn, resp, err := library.Dial(ctx, s.url+widgets+query, options)
	s.t.Cleanup(func() {
		if conn != nil {
			_ = conn.CloseNow() // the server may have closed it
		}
		cancel()
	})
	if conn != nil {
		conn.SetReadLimit(1 << 20)
	}
	return &client{s.t, conn, ctx}, resp, err
}

func (s *server) watch(query string, headers ...string) *client {
	s.t.Helper()
	c, _, err := s.dial(query, headers...)
	require.NoError(s.t, err)
	return c
}

// refused starts a watch that is refused, and returns the Status.
func (s *server) refused(query string, headers ...string) *metav1.Status {
	s.t.Helper()
	_, resp, err := s.dial(query, headers...)
	require.Error(s.t, err)
	require.NotNil(s.t, resp, "%v", err)
	return statusOf(s.t, resp)
}

// statusOf returns the Status that an answer has.
func statusOf(t testing.TB, resp *http.Response) *metav1.Status {
	t.Helper()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var status metav1.Status
	require.NoError(t, json.Unmarshal(text, &status), "%s", text)
	require.Equal(t, int(status.Code), resp.StatusCode)
	return &status
}

// next returns the next event as type and name, or how the connection was closed.
func (c *client) next() string {
	c.t.Helper()
	kind, text, err := c.conn.Read(c.ctx)
	if code := library.CloseStatus(err); code >= 0 {
		return fmt.Sprint("closed ", int(code))
	}
	require.NoError(c.t, err)
	require.Equal(c.t, library.MessageText, kind)
	var event struct {
		Type   string
		Object metav1.PartialObjectMetadata
	}
	require.NoError(c.t, json.Unmarshal(text, &event), "%s", text)
	require.NotEmpty(c.t, event.Object.Kind)
	return strings.TrimSpace(event.Type + " " + event.Object.Name)
}

// change is next without bookmarks: of these there may be more than a test makes, such as one a second after
// the start of a watch whose initial state has not been sent by then.
func (c *client) change() string {
	c.t.Helper()
	got := c.next()
	for got == "BOOKMARK" {
		got = c.next()
	}
	return got
}

func (c *client) expect(want ...string) {
	c.t.Helper()
	for _, one := range want {
		require.Equal(c.t, one, c.next())
	}
}
