package etcdtest

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// peers is the network between the members of a cluster: a proxy before each of them,
// whose address is the one that the others know.
//
//	member ──▶ proxy of another ──▶ the other's port for members
//	               │ the first request of a connection says which member it is of
//	               └── isolated: broken    held back: no log entries to that member
type peers struct {
	running sync.WaitGroup

	mu   sync.Mutex
	turn *sync.Cond // a connection may be held back no longer
	// isolated and heldBack are names of members, as is peer.from: the hexadecimal ID.
	isolated, heldBack map[string]bool
	delay              time.Duration
	listeners          []net.Listener
	connections        map[*peer]struct{}
	closed             bool
}

// peer is a connection between two members.
type peer struct {
	connection
	// from is the ID of the member that has made it, "" if unknown; to gives that of the other.
	from string
	to   func() string
	// entries: its replies are entries of the log.
	entries bool
	closed  bool
}

func startPeers(t testing.TB) *peers {
	p := &peers{isolated: map[string]bool{}, heldBack: map[string]bool{}, connections: map[*peer]struct{}{}}
	p.turn = sync.NewCond(&p.mu)
	t.Cleanup(p.close)
	return p
}

// listen starts a proxy before a member's address, and returns its own.
func (p *peers) listen(t testing.TB, target string, to func() string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("starting a proxy between members: %v", err)
	}
	p.listeners = append(p.listeners, l)
	p.running.Go(func() { p.accept(l, target, to) })
	return l.Addr().String()
}

// close stops the proxies and waits for their goroutines.
func (p *peers) close() {
	for _, l := range p.listeners {
		_ = l.Close()
	}
	p.change(func() { p.closed = true })
	p.running.Wait()
}

// change changes what is broken or held back.
func (p *peers) change(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	for c := range p.connections {
		if p.broken(c) {
			c.close()
		}
	}
	p.turn.Broadcast()
}

// broken reports whether a connection is to be broken. The caller holds the lock.
func (p *peers) broken(c *peer) bool {
	return p.closed || p.isolated[c.from] || p.isolated[c.to()]
}

func (p *peers) accept(l net.Listener, target string, to func() string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client, target, to) })
	}
}

// headPatience is how long a connection may take to say what it is for.
const headPatience = time.Second

// serve carries a connection, once its first request has said what it is for.
func (p *peers) serve(client net.Conn, target string, to func() string) {
	_ = client.SetReadDeadline(time.Now().Add(headPatience))
	head := make([]byte, 0, 4<<10)
	for !bytes.Contains(head, []byte("\r\n\r\n")) && len(head) < cap(head) {
		n, err := client.Read(head[len(head):cap(head)])
		if head = head[:len(head)+n]; err != nil {
			break
		}
	}
	_ = client.SetReadDeadline(time.Time{})
	server, err := net.Dial("tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &peer{connection: connection{client, server}, to: to}
	c.from, c.entries = purpose(head)
	if !p.admit(c) {
		c.close()
		return
	}
	p.running.Go(func() { p.carry(c, replies, client, server) })
	if _, err := server.Write(head); err != nil {
		p.forget(c)
		return
	}
	p.carry(c, requests, server, client)
}

// purpose returns the ID of the member that makes a request, and whether that asks for
// entries of the log.
func purpose(head []byte) (from string, entries bool) {
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if name, value, found := strings.Cut(line, ": "); found && strings.EqualFold(name, "X-Server-From") {
			from = value
		}
	}
	return from, bytes.HasPrefix(head, []byte("GET /raft/stream/msgapp/"))
}

func (p *peers) admit(c *peer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken(c) {
		return false
	}
	p.connections[c] = struct{}{}
	return true
}

func (p *peers) carry(c *peer, way int, to io.Writer, from io.Reader) {
	defer p.forget(c)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !p.release(c, way) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// release waits while what was read is held back. It reports false if the connection is broken meanwhile.
func (p *peers) release(c *peer, way int) bool {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	time.Sleep(delay)
	p.mu.Lock()
	defer p.mu.Unlock()
	for !c.closed && way == replies && c.entries && p.heldBack[c.from] && !p.broken(c) {
		p.turn.Wait()
	}
	return !c.closed && !p.broken(c)
}

func (p *peers) forget(c *peer) {
	c.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	c.closed = true
	delete(p.connections, c)
	p.turn.Broadcast()
}
