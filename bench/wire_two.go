package bench

import (
	"context"
	"fmt"
	"net/http"
)

// streamsEach is how many watches over HTTP/2 share a connection: a number that servers and
// clients of HTTP/2 commonly allow.
const streamsEach = 100

// overTwo is a [wire] whose watches are streams of HTTP/2.
type overTwo struct{ *wire }

// Watch opens a watch over HTTP/2, a hundred to a connection, and reads it on a goroutine of
// its own.
func (s overTwo) Watch(ctx context.Context, what Selection, from uint64, handle func(seq int64)) (Watch, error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := s.open(ctx, what, from)
	if err != nil {
		cancel()
		return nil, err
	}
	return readWatch(resp.Body, handle, func() {
		cancel()
		_ = resp.Body.Close() // which only ends the stream
	}), nil
}

func (s overTwo) open(ctx context.Context, what Selection, from uint64) (*http.Response, error) {
	scheme := "http"
	if s.trust != nil {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+s.addr+s.target(what, from), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	authorize(req, s.token)
	resp, err := s.nextTransport().RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		_ = resp.Body.Close() // the answer was not that of a watch
		return nil, fmt.Errorf("watch: %s %s", resp.Proto, resp.Status)
	}
	return resp, nil
}

// watches returns the store whose watches are as the connections are meant: of HTTP/2 if they
// are encrypted, as those of most clients, otherwise of HTTP/1.1.
func (s *wire) watches() Store {
	if s.trust != nil {
		return overTwo{s}
	}
	return s
}

// nextTransport returns the transport of the next watch: one of its own for each hundred, and
// so one connection. Watches are opened one after the other.
func (s overTwo) nextTransport() *http.Transport {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.second%streamsEach == 0 {
		s.shared = append(s.shared, newTransportOfTwo(s.wire))
	}
	s.second++
	return s.shared[len(s.shared)-1]
}

// newTransportOfTwo returns a transport that has only HTTP/2.
func newTransportOfTwo(s *wire) *http.Transport {
	var two http.Protocols
	two.SetHTTP2(s.trust != nil)
	two.SetUnencryptedHTTP2(s.trust == nil)
	t := uncompressed(s.trust)
	t.Protocols = &two
	return t
}
