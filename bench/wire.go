package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
)

// wire makes a [Server] behind a socket a [Store]: its watches and lists are requests
// over HTTP/1.1, and each watch has a connection of its own. See wire_two.go for watches over
// HTTP/2, and wire_requests.go for servers that listen by themselves.
type wire struct {
	Server
	http   *http.Server // nil if the Server listens by itself
	addr   string
	ended  chan error
	client *http.Client
	trust  *tls.Config // of clients; nil if connections are not encrypted
	token  string      // of clients; empty if they need none

	mu     sync.Mutex
	conns  []net.Conn
	shared []*http.Transport // of watches over HTTP/2
	second int               // the number of watches over HTTP/2 that were opened
}

// overHTTP returns a function that opens a contender's server and listens.
func overHTTP(c Contender) func(context.Context) (*wire, error) {
	return func(ctx context.Context) (*wire, error) {
		server, err := c.Server(ctx)
		if err != nil {
			return nil, err
		}
		return listen(ctx, server, nil)
	}
}

// hardener is a [Server] that sets up the http.Server which serves it, as its users do.
type hardener interface{ Harden(h *http.Server) }

// streams is the maximum number of streams of a connection of HTTP/2.
const streams = 250

// listen serves on loopback, encrypted unless own is nil.
func listen(ctx context.Context, server Server, own *identity) (*wire, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	var both http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(own == nil)
	both.SetHTTP2(own != nil)
	s := &wire{
		Server: server, addr: listener.Addr().String(), ended: make(chan error, 1), client: &http.Client{Transport: uncompressed(nil)},
		http: &http.Server{Handler: server.Handler(), Protocols: &both, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: streams}},
	}
	if h, ok := server.(hardener); ok {
		h.Harden(s.http)
	}
	if own == nil {
		go func() { s.ended <- s.http.Serve(listener) }()
		return s, nil
	}
	s.http.TLSConfig, s.trust = own.server, own.client
	go func() { s.ended <- s.http.ServeTLS(listener, "", "") }()
	return s, nil
}

// uncompressed returns the transport of a client that asks for no compression: the API server compresses a large
// list for each client that accepts that, as Go's do, and a server of ours only if it is configured to.
func uncompressed(trust *tls.Config) *http.Transport {
	return &http.Transport{TLSClientConfig: trust, DisableCompression: true}
}

// Close closes the connections first, and so ends the watches.
func (s *wire) Close() error {
	s.closeClients()
	return errors.Join(s.closeHTTP(), s.Server.Close())
}

// closeClients closes the connections.
func (s *wire) closeClients() {
	for _, c := range s.conns {
		_ = c.Close() // a watch that has ended has closed it
	}
	s.client.CloseIdleConnections()
	for _, t := range s.shared {
		t.CloseIdleConnections()
	}
}

func (s *wire) closeHTTP() error {
	if s.http == nil {
		return nil
	}
	err := s.http.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

func (s *wire) Settle(context.Context) error { return nil }

func (s *wire) Get(context.Context, string) (Object, error) {
	return Object{}, errors.ErrUnsupported
}

// seqMark is the text before the Seq in the JSON of an object.
var seqMark = []byte(`"` + SeqAnnotation + `":"`)

// List counts the objects in the answer as it arrives.
func (s *wire) List(ctx context.Context, _ Selection) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+s.Path()+"?resourceVersion=0", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("list: %s", resp.Status)
	}
	return countMarks(resp.Body)
}

// countMarks counts how often seqMark is in the stream, including those that are split between two
// reads.
func countMarks(from io.Reader) (int, error) {
	buffer, kept, n := make([]byte, 64<<10), 0, 0
	for {
		read, err := from.Read(buffer[kept:])
		text := buffer[:kept+read]
		n += bytes.Count(text, seqMark)
		kept = min(len(text), len(seqMark)-1)
		copy(buffer, text[len(text)-kept:])
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// dialer is a net.Dialer or a tls.Dialer.
type dialer interface {
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

// dial opens a connection that lasts until Close: of HTTP/2 if it is encrypted.
func (s *wire) dial(ctx context.Context) (net.Conn, error) {
	var by dialer = new(net.Dialer)
	if s.trust != nil {
		two := s.trust.Clone()
		two.NextProtos = []string{"h2"}
		by = &tls.Dialer{Config: two}
	}
	conn, err := by.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, conn)
	return conn, nil
}

// target returns the path and query of a watch.
func (s *wire) target(what Selection, from uint64) string {
	target := s.Path() + "?watch=1&allowWatchBookmarks=1&timeoutSeconds=3600&resourceVersion=" + strconv.FormatUint(from, 10)
	field, label := what.selectors()
	if field != "" {
		target += "&fieldSelector=" + url.QueryEscape(field)
	}
	if label != "" {
		target += "&labelSelector=" + url.QueryEscape(label)
	}
	return target
}

// wireWatch is a watch whose events a goroutine reads until stop has been called.
type wireWatch struct {
	stop func()
	done chan struct{}
}

func (w *wireWatch) Done() <-chan struct{}          { return w.done }
func (w *wireWatch) Drain(context.Context, int) int { return 0 }
func (w *wireWatch) Stop()                          { w.stop() }

// readWatch returns a watch that calls handle for each event of the answer.
func readWatch(answer io.Reader, handle func(seq int64), stop func()) *wireWatch {
	w := &wireWatch{stop, make(chan struct{})}
	go func() {
		defer close(w.done)
		readFrames(answer, handle)
	}()
	return w
}

// Watch reads frames on a goroutine of its own. It finds the Seq without decoding the
// frame, since the server is measured and not the client.
func (s *wire) Watch(ctx context.Context, what Selection, from uint64, handle func(seq int64)) (Watch, error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n", s.target(what, from))
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("watch: %s", resp.Status)
	}
	// A watch that has ended has closed its connection.
	return readWatch(resp.Body, handle, func() { _ = conn.Close() }), nil
}

// readFrames calls handle for each frame with a Seq that is measured, until the
// stream ends.
func readFrames(from io.Reader, handle func(seq int64)) {
	lines := bufio.NewReaderSize(from, 16<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		_, after, found := bytes.Cut(line, seqMark)
		if !found {
			continue
		}
		digits, _, _ := bytes.Cut(after, []byte(`"`))
		if seq, err := strconv.ParseInt(string(digits), 10, 64); err == nil && seq >= 0 {
			handle(seq)
		}
	}
}
