package etcdtest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a network that fails on demand: a TCP proxy in front of an endpoint.
//
//	client ──▶ Endpoint ──requests──▶ target
//	             ◀────────replies────────┘
//
//	Cut        breaks all connections, and new ones at once
//	Mute       drops replies: requests arrive, and are never answered
//	BlackHole  drops both; connections stay open without traffic
//	Delay      delays both
//	Redirect   leads to another target
//	Heal       ends Mute, BlackHole and Cut, for connections made from then on
//
// The proxy listens as long as the test runs, even while it is cut: another process could
// take the port of a listener that was closed.
//
// All methods are safe for concurrent use.
type Proxy struct {
	// Endpoint is where clients connect to.
	Endpoint string

	listener net.Listener
	running  sync.WaitGroup

	mu          sync.Mutex
	target      string
	broken      bool    // cut, or closed
	swallow     [2]bool // drops requests, replies
	delay       time.Duration
	connections map[*connection]struct{}
}

// The two ways through a proxy.
const (
	requests = iota
	replies
)

// connection is one connection through a proxy.
type connection struct{ client, server net.Conn }

func (c *connection) close() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// StartProxy starts a proxy before target, which is stopped when the test ends.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("starting a proxy: %v", err)
	}
	p := &Proxy{Endpoint: l.Addr().String(), listener: l, target: target, connections: map[*connection]struct{}{}}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Cut breaks all connections, and each new one at once, until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
	p.breakAll()
}

// Mute drops all replies from now on: requests take effect, and are not answered.
func (p *Proxy) Mute() { p.set([2]bool{replies: true}) }

// BlackHole drops everything from now on. Connections stay open, as with a
// machine that was switched off.
func (p *Proxy) BlackHole() { p.set([2]bool{true, true}) }

// Heal lets everything through again. It breaks connections from which something was
// dropped, since their streams have a gap.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.swallow != [2]bool{} {
		p.breakAll()
	}
	p.swallow, p.broken = [2]bool{}, false
}

// Delay delays everything by d, each way; zero ends that.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Redirect breaks all connections, and leads those made from then on to another
// target, as when a cluster was restored or replaced.
func (p *Proxy) Redirect(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	p.breakAll()
}

// leadsTo returns the target, "" if the proxy is cut.
func (p *Proxy) leadsTo() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return ""
	}
	return p.target
}

func (p *Proxy) set(swallow [2]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = swallow
}

// breakAll breaks all connections. The caller holds the lock.
func (p *Proxy) breakAll() {
	for c := range p.connections {
		c.close()
	}
}

// close stops the proxy and waits for its goroutines.
func (p *Proxy) close() {
	p.Cut()
	_ = p.listener.Close()
	p.running.Wait()
}

// accept takes connections until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		target := p.leadsTo()
		if target == "" {
			_ = client.(*net.TCPConn).SetLinger(0) // a reset, as of a connection that breaks
			_ = client.Close()
			continue
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close() // as the client would see without the proxy
			continue
		}
		c := &connection{client, server}
		if !p.admit(c, target) {
			c.close()
			continue
		}
		p.running.Go(func() { p.carry(c, requests, server, client) })
		p.running.Go(func() { p.carry(c, replies, client, server) })
	}
}

// admit registers a connection to a target, unless the proxy leads elsewhere by now.
func (p *Proxy) admit(c *connection, target string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken || p.target != target {
		return false
	}
	p.connections[c] = struct{}{}
	return true
}

// carry copies from one end to the other until either is closed.
func (p *Proxy) carry(c *connection, way int, to io.Writer, from io.Reader) {
	defer p.forget(c)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if p.swallowed(way) {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// swallowed waits for the delay, and reports whether to drop what was read.
func (p *Proxy) swallowed(way int) bool {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.swallow[way]
}

func (p *Proxy) forget(c *connection) {
	c.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.connections, c)
}
