package websocket_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve/websocket"
)

func TestOrigin_ForeignPagesAreRefused(t *testing.T) {
	s := newServer(t, websocket.Options{Origins: []string{"https://console.example.com"}})
	host := strings.TrimPrefix(s.url, "http://")
	for origin, want := range map[string]int32{
		"https://evil.example.com": 403, "https://console.example.com.evil.com": 403, "http://console.example.com": 403,
		"null": 403, "https://evilconsole.example.com": 403, "https://console.example.com:8443": 403, "://": 403,
	} {
		require.Equal(t, want, s.refused("?watch=1", "Origin", origin).Code, origin)
	}
	require.Equal(t, int32(403), s.refused("?watch=1", "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, int32(400), s.refused("?watch=1", "Host", "evil.example.com").Code, "DNS that was rebound")
	s.create("a", 0)
	for _, origin := range []string{"", "http://" + host, "https://console.example.com"} {
		s.watch("?watch=1", "Origin", origin).expect("ADDED a")
	}
}

// Clients in Java send an Origin, with the port of their configuration, but a Host without a port that the
// scheme implies.
func TestOrigin_MayNameThePortThatItsSchemeImplies(t *testing.T) {
	s := newServer(t, websocket.Options{Origins: []string{"https://console.example.com"}})
	s.create("a", 0)
	for _, c := range [][2]string{
		{"127.0.0.1", "https://127.0.0.1:443"}, {"127.0.0.1:443", "https://127.0.0.1:443"}, {"[::1]", "http://[::1]:80"},
		{"127.0.0.1:8443", "https://console.example.com:443"},
	} {
		s.watch("?watch=1", "Host", c[0], "Origin", c[1]).expect("ADDED a")
	}
	for _, c := range [][2]string{
		{"127.0.0.1", "https://127.0.0.1:80"}, {"127.0.0.1", "https://127.0.0.1:8443"}, {"127.0.0.1:8443", "https://127.0.0.1:443"},
		{"127.0.0.1", "https://evil.example.com:443"}, {"127.0.0.1", "http://console.example.com:80"}, {"127.0.0.1", "ws://127.0.0.1:80"},
	} {
		require.Equal(t, int32(403), s.refused("?watch=1", "Host", c[0], "Origin", c[1]).Code, c)
	}
}

// An allowed origin may be written with such a port, although browsers leave it out.
func TestOrigin_MayBeAllowedWithThePortThatItsSchemeImplies(t *testing.T) {
	s := newServer(t, websocket.Options{Origins: []string{"https://console.example.com:443"}})
	s.create("a", 0)
	for _, origin := range []string{"https://console.example.com:443", "https://console.example.com"} {
		s.watch("?watch=1", "Origin", origin).expect("ADDED a")
	}
	require.Equal(t, int32(403), s.refused("?watch=1", "Origin", "http://console.example.com:443").Code)
}
