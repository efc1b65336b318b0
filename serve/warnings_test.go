package serve_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// A body may have a hundred thousand fields that its kind does not have, each of which is warned of. If each
// was compared with all before it, a million would take most of an hour.
func TestWarnings_MayBeMany(t *testing.T) {
	var texts []string
	for i := range 1_000_000 {
		texts = append(texts, fmt.Sprintf("unknown field %06d", i))
	}
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Strategy.Warn = func(context.Context, *Widget, *Widget) []string { return texts }
	})
	require.Equal(t, 201, s.do("POST", inDefault, `{"metadata":{"name":"a"}}`).code)
}

// A kind may have more to warn of than the headers of an answer can hold. Characters are counted,
// not bytes.
func TestWarnings_AreEachOnceAndBounded(t *testing.T) {
	var texts []string
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Strategy.Warn = func(context.Context, *Widget, *Widget) []string { return texts }
	})
	warned := func(of ...string) []string {
		t.Helper()
		texts = of
		a := s.do("POST", inDefault+"?dryRun=All", `{"metadata":{"name":"a"}}`)
		require.Equal(t, 201, a.code, a.body)
		var all []string
		for _, header := range a.header.Values("Warning") {
			text, err := strconv.Unquote(strings.TrimPrefix(header, "299 - "))
			require.NoError(t, err, header)
			all = append(all, text)
		}
		return all
	}
	require.Equal(t, []string{"one", "two"}, warned("one", "two", "one", "one"))
	long := strings.Repeat("ä", 4096)
	require.Equal(t, []string{long}, warned(long), "alone it is whole")
	cut := long[:2*256]
	require.Equal(t, []string{"short", cut, "short too"}, warned("short", long, "short too"))
	var many, want []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("%02d%s", i, long[:2*298]))
	}
	for i := range 16 {
		want = append(want, fmt.Sprintf("%02d%s", i, long[:2*254]))
	}
	require.Equal(t, want, warned(many...), "the rest is left out")
	require.Equal(t, []string{"of two lines"}, warned("of\x01two\nlines"))
}

// handshaker is an Upgrader that takes the connection over first, and then sends the header by itself.
type handshaker struct{}

func (handshaker) Wants(r *http.Request) (bool, error) { return r.Header.Get("Upgrade") != "", nil }

func (handshaker) Upgrade(w http.ResponseWriter, _ *http.Request, _ func(error)) (serve.Messages, error) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	var header strings.Builder
	_ = w.Header().Write(&header)
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n%s\r\n", header.String())
	return silent{conn}, err
}

// silent is a connection on which nothing is sent.
type silent struct{ net.Conn }

func (silent) Send(context.Context, []byte) error { return nil }
func (s silent) Close(int)                        { _ = s.Conn.Close() }

func TestWarnings_AreInTheHeaderThatAnUpgraderSends(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], cfg *serve.Config) {
		w.Deprecated, cfg.WebSocket = "use v2", handshaker{}
	})
	resp := s.send(t.Context(), "GET", inDefault+"?watch=1&timeoutSeconds=1", "", "Connection", "Upgrade", "Upgrade", "test")
	defer resp.Body.Close()
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	require.Equal(t, []string{`299 - "use v2"`}, resp.Header.Values("Warning"))
}
