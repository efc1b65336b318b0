package interop_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy is a network that goes wrong on demand: TCP connections to an address that
// stays, whichever server is behind it.
//
//	client ──dial──▶ address ──requests──▶ target
//	                    ◀─────replies─────────┘
//
// The proxy listens as long as the test runs, since another process could take the port
// of a listener that was closed. So refusals are those of dial, by which clients connect.
type proxy struct {
	address string
	running sync.WaitGroup

	mu      sync.Mutex
	target  string // "": connections are refused
	quality linkQuality
	pairs   map[*pair]struct{}
	// draining: the server is being shut down, so that it may end watches at any time.
	draining bool
	// unanswered is how many connections a fault has ended before the client had a whole
	// frame of the reply.
	unanswered int
}

// linkQuality is how a proxy passes data on: in pieces of at most that many bytes, each after
// a pause, or not at all.
type linkQuality struct {
	piece int
	pause time.Duration
	drop  bool
}

var (
	good     = linkQuality{piece: 64 << 10}
	slow     = linkQuality{piece: 700, pause: 3 * time.Millisecond}
	buffered = linkQuality{piece: 64 << 10, pause: 150 * time.Millisecond}
	halfOpen = linkQuality{piece: 64 << 10, drop: true}
)

// pair is a client's connection and the one to the target that it is connected with.
type pair struct {
	client, server net.Conn
	ended          chan struct{}
	once           sync.Once
	// answered: the client has a whole frame, or the whole object of another reply.
	answered atomic.Bool
}

// end closes the connections, and reports whether they were open.
func (p *pair) end() (wasOpen bool) {
	p.once.Do(func() {
		wasOpen = true
		close(p.ended)
		_ = p.client.Close()
		_ = p.server.Close()
	})
	return wasOpen
}

// newProxy returns a proxy that refuses connections until forwardTo is called.
func newProxy(t *testing.T) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{address: l.Addr().String(), quality: good, pairs: map[*pair]struct{}{}}
	p.running.Go(func() { p.accept(l) })
	t.Cleanup(func() {
		p.refuse()
		_ = l.Close()
		p.running.Wait()
	})
	return p
}

// dial connects to the proxy, or fails as a connection to a port at which nothing
// listens.
func (p *proxy) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	if target, _ := p.now(); target == "" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	return new(net.Dialer).DialContext(ctx, network, p.address)
}

// forwardTo makes new connections go to a target.
func (p *proxy) forwardTo(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target, p.quality, p.draining = target, good, false
}

// startDraining says that the server begins to shut down.
func (p *proxy) startDraining() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draining = true
}

// refuse breaks all connections, and refuses new ones.
func (p *proxy) refuse() {
	p.mu.Lock()
	p.target = ""
	p.mu.Unlock()
	p.cut()
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		p.fail(c)
	}
}

// fail ends a pair by a fault. The caller holds the lock.
func (p *proxy) fail(c *pair) {
	if c.end() && !c.answered.Load() {
		p.unanswered++
	}
}

// refuseAccepted closes a connection whose server has just gone.
func (p *proxy) refuseAccepted(client net.Conn) {
	_ = client.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unanswered++
}

func (p *proxy) countUnanswered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unanswered
}

func (p *proxy) setQuality(q linkQuality) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quality = q
}

func (p *proxy) now() (string, linkQuality) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target, p.quality
}

func (p *proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		target, _ := p.now()
		if target == "" { // since the client dialed
			p.refuseAccepted(client)
			continue
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			p.refuseAccepted(client)
			continue
		}
		c := &pair{client: client, server: server, ended: make(chan struct{})}
		p.mu.Lock()
		if p.target != target {
			p.fail(c)
		}
		p.pairs[c] = struct{}{}
		p.mu.Unlock()
		p.running.Go(func() { p.relay(c, server, client) })
		p.running.Go(func() { p.relay(c, client, server) })
	}
}

// endOfObject is how a frame ends, and any other object. No header has it.
var endOfObject = []byte("}\n")

// relay copies data in one direction until either connection is closed.
func (p *proxy) relay(c *pair, to, from net.Conn) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.draining {
			p.fail(c)
		}
		c.end()
		delete(p.pairs, c)
	}()
	buffer := make([]byte, 64<<10)
	for last := byte(0); ; {
		_, w := p.now()
		n, err := from.Read(buffer[:w.piece])
		if err != nil {
			return
		}
		if _, w = p.now(); w.drop {
			continue
		}
		if w.pause > 0 {
			select {
			case <-time.After(w.pause):
			case <-c.ended:
				return
			}
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
		if to == c.client && !c.answered.Load() && bytes.Contains(append([]byte{last}, buffer[:n]...), endOfObject) {
			c.answered.Store(true)
		}
		last = buffer[n-1]
	}
}
