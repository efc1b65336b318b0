package websocket_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	library "github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/pipenet"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/websocket"
)

func TestWatch_EachEventIsATextMessage(t *testing.T) {
	s := newServer(t, websocket.Options{})
	from := s.create("a", 0)
	w := s.watch("?watch=1&allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan")
	w.expect("ADDED a", "BOOKMARK")
	resumed := s.watch("?watch=1&resourceVersion=" + from)
	s.create("b", 100_000)
	require.Equal(t, "ADDED b", w.change())
	resumed.expect("ADDED b")
	table := s.watch("?watch=1", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	kind, text, err := table.conn.Read(table.ctx)
	require.NoError(t, err)
	require.Equal(t, library.MessageText, kind)
	require.Contains(t, string(text), `"columnDefinitions"`)
	require.Equal(t, 3, s.handler.Stats().Watches)
}

func TestWatch_LeavesEmittedValuesOut(t *testing.T) {
	s := newServer(t, websocket.Options{})
	w := s.watch("?watch=1&resourceVersion=" + s.create("a", 0))
	_, err := s.widgets.Engine().Emit(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "passing"}})
	require.NoError(t, err)
	s.create("b", 0)
	w.expect("ADDED b")
}

// What is wrong is answered before the upgrade, as for any watch.
func TestWatch_RefusalsAreStatuses(t *testing.T) {
	s := newServer(t, websocket.Options{}, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.WatchesPerUser = 1
	})
	s.create("a", 0)
	for query, want := range map[string]string{
		"?watch=1&labelSelector=a%3D%3D%3Db":   "400 BadRequest",
		"?watch=1&sendInitialEvents=1":         "422 Invalid",
		"?watch=1&resourceVersion=x":           "400 BadRequest",
		"?watch=1&fieldSelector=spec.none%3Da": "400 BadRequest",
		"/a/none?watch=1":                      "404 NotFound",
		"?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&resourceVersion=0&limit=three": "400 BadRequest",
	} {
		status := s.refused(query)
		require.Equal(t, want, fmt.Sprintf("%d %s", status.Code, status.Reason), query)
	}
	s.watch("?watch=1").expect("ADDED a")
	status := s.refused("?watch=1")
	require.Equal(t, "429 TooManyRequests 1", fmt.Sprintf("%d %s %d", status.Code, status.Reason, status.Details.RetryAfterSeconds))
}

func TestProtocols_FirstIsChosenAndTokensAreTaken(t *testing.T) {
	s := newServer(t, websocket.Options{}, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authenticate = websocket.Tokens(serve.BearerTokens(map[string]serve.User{"secret": {Name: "alice"}}))
	})
	s.create("a", 0)
	token := func(text string) string {
		return "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	const name = "Sec-WebSocket-Protocol"
	w := s.watch("?watch=1", name, "base64.binary.k8s.io", name, "other, "+token("secret"))
	w.expect("ADDED a")
	require.Equal(t, "base64.binary.k8s.io", w.conn.Subprotocol())
	require.Empty(t, s.watch("?watch=1", "Authorization", "Bearer secret").conn.Subprotocol())
	for want, headers := range map[string][]string{
		"401 no token":     {},
		"401 a wrong one":  {name, token("wrong"), name, "watch"},
		"400 alone":        {name, token("secret")},
		"400 two":          {name, token("secret"), name, token("secret"), name, "watch"},
		"400 empty":        {name, token(""), name, "watch"},
		"400 no base64url": {name, "base64url.bearer.authorization.k8s.io.???", name, "watch"},
		"401 beside a header, which is what counts": {name, token("secret"), name, "watch", "Authorization", "Bearer wrong"},
	} {
		require.Equal(t, want[:3], fmt.Sprint(s.refused("?watch=1", headers...).Code), want)
	}
	plain, err := http.NewRequestWithContext(t.Context(), "GET", s.url+widgets, http.NoBody)
	require.NoError(t, err)
	plain.Header.Set("Connection", "Upgrade")
	plain.Header.Set("Upgrade", "h2c")
	for _, offered := range [][]string{nil, {token("secret") + ", watch"}} {
		plain.Header[http.CanonicalHeaderKey(name)] = offered
		resp, err := http.DefaultClient.Do(plain)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 401, resp.StatusCode, "requests that are not handshakes")
	}
}

// What upgrades a request without asking Wants first has answered it, too.
func TestUpgrade_AnswersWhatItRefuses(t *testing.T) {
	u, err := websocket.New(websocket.Options{})
	require.NoError(t, err)
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.c2VjcmV0") // and nothing else
	w := httptest.NewRecorder()
	_, err = u.Upgrade(w, r, func(error) {})
	require.ErrorContains(t, err, "nothing but a token")
	require.Equal(t, 400, w.Code)
	require.Contains(t, w.Body.String(), "nothing but a token")
}

// The library would refuse them, too, but in plain text.
func TestHandshake_MalformedOnesAreRefusedByStatuses(t *testing.T) {
	s := newServer(t, websocket.Options{})
	const key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	for name, request := range map[string]struct{ method, headers string }{
		"version":     {"GET", "Sec-WebSocket-Version: 8\r\n" + key},
		"no key":      {"GET", "Sec-WebSocket-Version: 13\r\n"},
		"a short key": {"GET", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n"},
		"no base64":   {"GET", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ????????????????????????\r\n"},
		"two keys":    {"GET", "Sec-WebSocket-Version: 13\r\n" + key + key},
		"method":      {"POST", "Sec-WebSocket-Version: 13\r\n" + key},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, err)
		fmt.Fprintf(conn, "%s %s?watch=1 HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n%s\r\n", request.method, widgets, request.headers)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, metav1.StatusReasonBadRequest, statusOf(t, resp).Reason, name)
		require.NoError(t, conn.Close())
	}
}

// Warnings are headers, which an upgraded watch has, too.
func TestHandshake_WarnsOfADeprecatedVersion(t *testing.T) {
	s := newServer(t, websocket.Options{}, func(cfg *registry.Config[Widget], _ *serve.Config) { cfg.Deprecated = "use v2" })
	_, resp, err := s.dial("?watch=1&timeoutSeconds=1")
	require.NoError(t, err)
	require.Equal(t, []string{`299 - "use v2"`}, resp.Header.Values("Warning"))
}

func TestEnd_DeadlineClosesNormally(t *testing.T) {
	s := newServer(t, websocket.Options{})
	from := s.create("a", 0) // so that there is no initial state, which the deadline could cut
	s.watch("?watch=1&timeoutSeconds=1&resourceVersion=" + from).expect("closed 1000")
	require.NoError(t, (<-s.ended).End)
}

// A watch whose client is too slow for the window ends with an ERROR event, as over HTTP,
// and the connection is closed.
func TestEnd_ReasonsAreErrorEvents(t *testing.T) {
	s := newServer(t, websocket.Options{}, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Engine.Window.MaxEvents, w.Engine.Window.MinAge = 8, 1
	})
	w := s.watch("?watch=1&resourceVersion=" + s.create("a", 0))
	for i := range 500 { // far more than a connection's buffers take; the window moves on
		s.create(fmt.Sprint("w", i), 100_000)
	}
	last := ""
	for got := w.next(); !strings.HasPrefix(got, "closed"); got = w.next() {
		last = got
	}
	require.Equal(t, "ERROR", last)
	require.ErrorIs(t, (<-s.ended).End, engine.ErrExpired)
}

// A page does not see with which status a handshake is refused. So a watch from a revision that is gone is
// told by an event that it has to list, as over HTTP.
func TestEnd_ARevisionThatIsGoneIsAnErrorEvent(t *testing.T) {
	s := newServer(t, websocket.Options{})
	s.create("a", 0)
	s.watch("?watch=1&resourceVersion=1").expect("ERROR", "closed 1000")
	require.ErrorIs(t, (<-s.ended).End, engine.ErrExpired)
}

// odd panics as it is encoded.
type odd struct{}

func (odd) MarshalJSON() ([]byte, error) { panic("odd") }

func TestEnd_FailureOfTheServerIsNoNormalClosure(t *testing.T) {
	s := newServer(t, websocket.Options{}, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Columns = []registry.Column[Widget]{{Name: "Odd", Type: "string", Value: func(*Widget) any { return odd{} }}}
	})
	s.create("a", 0)
	s.watch("?watch=1", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").expect("closed 1011")
	require.ErrorContains(t, (<-s.ended).End, "cut off")
}

func TestEnd_ShutdownClosesAsGoingAway(t *testing.T) {
	s := newServer(t, websocket.Options{}, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = 1, 1
	})
	s.create("a", 0)
	var all []*client
	for range 20 {
		w := s.watch("?watch=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=1&allowWatchBookmarks=1")
		w.expect("ADDED a", "BOOKMARK")
		all = append(all, w)
	}
	down := make(chan error, 1)
	go func() { down <- s.handler.Shutdown(t.Context()) }()
	for _, w := range all {
		require.Equal(t, "closed 1001", w.change())
	}
	require.NoError(t, <-down)
	require.Zero(t, s.handler.Stats().Watches)
	require.Equal(t, int32(429), s.refused("?watch=1").Code)
}

func TestClient_ThatGoesAwayLeavesNothing(t *testing.T) {
	inBubble(t, websocket.Options{}, func(t *testing.T, s *server) {
		s.create("a", 0)
		polite, rude := s.watch("?watch=1"), s.watch("?watch=1")
		polite.expect("ADDED a")
		rude.expect("ADDED a")
		require.NoError(t, polite.conn.Close(library.StatusNormalClosure, ""))
		require.ErrorContains(t, (<-s.ended).End, "gone")
		require.NoError(t, rude.conn.CloseNow())
		require.ErrorContains(t, (<-s.ended).End, "gone")
		require.Zero(t, s.handler.Stats().Watches)
	})
}

func TestClient_WhatItSaysIsIgnored(t *testing.T) {
	s := newServer(t, websocket.Options{})
	s.create("a", 0)
	w := s.watch("?watch=1")
	for _, kind := range []library.MessageType{library.MessageText, library.MessageBinary} {
		require.NoError(t, w.conn.Write(w.ctx, kind, []byte(strings.Repeat("x", 10_000))))
	}
	w.expect("ADDED a")
	s.create("b", 0)
	w.expect("ADDED b")
	require.NoError(t, w.conn.Write(w.ctx, library.MessageText, []byte(strings.Repeat("x", 33_000))))
	w.expect("closed 1009")
	require.ErrorContains(t, (<-s.ended).End, "gone")
}

// A client that takes nothing is cut off, and holds up no other.
func TestClient_ThatNeverReads(t *testing.T) {
	inBubble(t, websocket.Options{}, func(t *testing.T, s *server) {
		s.watch("?watch=1") // whose events are not read
		other := s.watch("?watch=1&fieldSelector=metadata.name%3Dlast")
		began := time.Now()
		s.create("w", 200_000)
		require.ErrorContains(t, (<-s.ended).End, "gone")
		require.Equal(t, 10*time.Second, time.Since(began))
		s.create("last", 0)
		other.expect("ADDED last")
		require.Equal(t, 1, s.handler.Stats().Watches)
	}, func(_ *registry.Config[Widget], c *serve.Config) { c.Limits.WriteStall = 10 * time.Second })
}

// A client that begins a message and does not go on holds up neither the end of its watch nor a
// shutdown.
func TestEnd_DoesNotWaitForTheRestOfAMessage(t *testing.T) {
	s := newServer(t, websocket.Options{Pong: 20 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	answer := handshake(t, conn, widgets+"?watch=1&timeoutSeconds=1&resourceVersion="+s.create("a", 0))
	closing := make([]byte, 4)
	_, err = io.ReadFull(answer, closing)
	require.NoError(t, err)
	require.Equal(t, []byte{0x88, 2, 1000 >> 8, 1000 & 0xff}, closing)
	message := []byte{0x81, 0x80 | 1, 0, 0, 0, 0, 'x'} // with a mask of zeros
	many := bytes.Repeat(message, 10_000)              // during which whatever closes the connection begins to read
	message[1]++
	_, _ = conn.Write(append(many, message...)) // which fails if the server has not waited
	require.NoError(t, (<-s.ended).End)
}

// Pings detect a connection whose other end is gone without a message.
func TestPing_ClientThatDoesNotAnswerIsClosed(t *testing.T) {
	inBubble(t, websocket.Options{Ping: time.Second, Pong: 20 * time.Second}, func(t *testing.T, s *server) {
		for _, name := range []string{"a", "b"} {
			began := time.Now()
			conn, err := s.client.Transport.(*http.Transport).DialContext(t.Context(), "", "")
			require.NoError(t, err)
			answer := handshake(t, conn, widgets+"?watch=1")
			go func() { _, _ = io.Copy(io.Discard, answer) }()
			require.ErrorContains(t, (<-s.ended).End, "ping")
			require.Equal(t, 21*time.Second, time.Since(began))
			require.NoError(t, conn.Close())
			s.create(name, 0) // the next ping is not answered after an event, either
		}
	})
}

func TestPing_ClientThatAnswersGoesOn(t *testing.T) {
	pinged := make(chan struct{}, 10)
	s := newServer(t, websocket.Options{Ping: time.Millisecond})
	s.create("a", 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := library.Dial(ctx, s.url+widgets+"?watch=1", &library.DialOptions{OnPingReceived: func(context.Context, []byte) bool {
		select {
		case pinged <- struct{}{}:
		default:
		}
		return true
	}})
	require.NoError(t, err)
	defer conn.CloseNow()
	_, _, err = conn.Read(ctx)
	require.NoError(t, err)
	read := make(chan error, 1)
	go func() {
		_, _, err := conn.Read(ctx)
		read <- err
	}()
	for range 10 {
		<-pinged
	}
	s.create("b", 0)
	require.NoError(t, <-read)
}

// upgraded serves h through a pipe, and opens a WebSocket there whose client sends and answers nothing by itself.
func upgraded(t *testing.T, h *http.Server) (conn net.Conn, answer *bufio.Reader) {
	p := pipenet.Listen()
	go func() { _ = h.Serve(p) }()
	conn, err := p.Dial(t.Context())
	require.NoError(t, err)
	return conn, handshake(t, conn, "/")
}

// handshake opens a WebSocket on a connection.
func handshake(t *testing.T, conn net.Conn, path string) (answer *bufio.Reader) {
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", path)
	answer = bufio.NewReader(conn)
	_, err := http.ReadResponse(answer, nil)
	require.NoError(t, err)
	return answer
}

// An event may take its client longer than a ping does, and has a limit of its own.
func TestPing_CutsNoEventOffThatIsBeingSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, err := websocket.New(websocket.Options{Ping: time.Second})
		require.NoError(t, err)
		gone, sent := make(chan error, 10), make(chan error, 1)
		h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			messages, err := u.Upgrade(w, r, func(err error) { gone <- err })
			if err == nil {
				err = messages.Send(context.Background(), []byte("event"))
				messages.Close(1000)
			}
			sent <- err
		})}
		conn, answer := upgraded(t, h)
		time.Sleep(20 * time.Second)
		require.Empty(t, gone)
		event := make([]byte, 7)
		_, err = io.ReadFull(answer, event)
		require.NoError(t, err)
		require.Equal(t, "\x81\x05event", string(event))
		synctest.Wait()
		require.Empty(t, gone)
		require.NoError(t, conn.Close())
		require.NoError(t, <-sent)
		require.NoError(t, h.Close())
	})
}

// A client has some time to answer the close of its watch, unless it is gone or answers nothing.
func TestEnd_WaitsNoLongerThanItMust(t *testing.T) {
	for name, c := range map[string]struct {
		options websocket.Options
		leaves  bool // the client
		silent  bool // until a ping fails
		takes   time.Duration
	}{
		"it does not answer the close":    {options: websocket.Options{}, takes: 5 * time.Second},
		"it has less time for any answer": {options: websocket.Options{Pong: 2 * time.Second}, takes: 2 * time.Second},
		"it has not answered a ping":      {options: websocket.Options{Ping: time.Second, Pong: time.Second}, silent: true},
		"it is gone":                      {options: websocket.Options{}, leaves: true},
		"it has more time for a ping":     {options: websocket.Options{Pong: time.Hour}, takes: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, err := websocket.New(c.options)
				require.NoError(t, err)
				gone, took := make(chan error, 10), make(chan time.Duration, 1)
				h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					messages, err := u.Upgrade(w, r, func(err error) { gone <- err })
					if err != nil {
						return
					}
					if c.leaves || c.silent {
						<-gone
					}
					if c.leaves && messages.Send(context.Background(), []byte("event")) == nil {
						gone <- errors.New("an event has reached a client that is gone")
					}
					began := time.Now()
					messages.Close(1000)
					took <- time.Since(began)
				})}
				conn, answer := upgraded(t, h)
				if c.leaves {
					require.NoError(t, conn.Close())
				}
				go func() { _, _ = io.Copy(io.Discard, answer) }()
				require.Equal(t, c.takes, <-took)
				_ = conn.Close()
				require.NoError(t, h.Close())
				synctest.Wait()
				for len(gone) > 0 {
					require.NotContains(t, (<-gone).Error(), "has reached")
				}
			})
		})
	}
}

func TestNew_RefusesWhatCannotBe(t *testing.T) {
	for _, o := range []websocket.Options{
		{Origins: []string{"console.example.com"}}, {Origins: []string{"*"}}, {Origins: []string{"https://a.example.com/path"}}, {Origins: []string{"https://a.example.com:443/path"}}, {Ping: -1}, {Pong: -1},
	} {
		_, err := websocket.New(o)
		require.ErrorIs(t, err, engine.ErrConfig, "%+v", o)
		require.ErrorContains(t, err, ": Options.")
	}
}

// FuzzHandshake sends the headers of handshakes: what is wanted can be completed, and
// what is foreign is refused.
func FuzzHandshake(f *testing.F) {
	u, err := websocket.New(websocket.Options{Origins: []string{"https://console.example.com"}})
	require.NoError(f, err)
	f.Add("Upgrade", "websocket", "13", "AAAAAAAAAAAAAAAAAAAAAA==", "watch", "https://console.example.com")
	f.Add("keep-alive, upgrade", "h2c, WebSocket", "13", "AAAAAAAAAAAAAAAAAAAAAA==", "base64url.bearer.authorization.k8s.io.eA,watch", "http://localhost")
	f.Add("", "", "", "", "base64url.bearer.authorization.k8s.io.", "null")
	f.Fuzz(func(t *testing.T, connection, upgrade, version, key, protocol, origin string) {
		r := &http.Request{Method: "GET", Host: "localhost", ProtoMajor: 1, ProtoMinor: 1, URL: &url.URL{Path: "/"}, Header: http.Header{}}
		for name, value := range map[string]string{
			"Connection": connection, "Upgrade": upgrade, "Sec-Websocket-Version": version, "Sec-Websocket-Key": key,
			"Sec-Websocket-Protocol": protocol, "Origin": origin,
		} {
			r.Header.Set(name, value)
		}
		user, err := websocket.Tokens(func(r *http.Request) (serve.User, error) {
			return serve.User{Name: r.Header.Get("Authorization")}, nil
		})(r)
		require.NoError(t, err)
		require.True(t, user.Name == "" || strings.HasPrefix(user.Name, "Bearer ") && len(user.Name) > len("Bearer "))
		require.Empty(t, r.Header.Get("Authorization"), "the request is not changed")
		wanted, err := u.Wants(r)
		if err != nil || !wanted {
			require.False(t, wanted)
			return
		}
		require.True(t, origin == "" || origin == "https://console.example.com" || strings.HasSuffix(strings.ToLower(origin), "://localhost"), origin)
		require.Equal(t, "13", version)
	})
}

// The panic is where the function is given, and not in a request.
func TestTokens_RefusesNoAuthentication(t *testing.T) {
	require.PanicsWithError(t, "invalid configuration: next is nil; give a function that identifies users, such as of serve.BearerTokens",
		func() { websocket.Tokens(nil) })
}
