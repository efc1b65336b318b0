package remote

import (
	"context"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// newest asks the server for its newest revision: one request serves all callers that
// wait when it is sent.
//
//	callers ──join──▶ next ──the request before is answered──▶ sent ──answer──▶ callers
//
// A caller joins no request that has been sent: a write may have been acknowledged after
// it, which the answer does not have.
type newest struct {
	fetch func(context.Context) (rev store.Revision, storage string, err error)
	// life is the context of all requests, which end cancels.
	life context.Context
	end  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	// next is the request that callers join, nil if none waits. sent is the last one that
	// was sent.
	next, sent *inquiry
	running    sync.WaitGroup
}

func newNewest(fetch func(context.Context) (store.Revision, string, error)) *newest {
	n := &newest{fetch: fetch}
	n.life, n.end = context.WithCancelCause(context.Background())
	return n
}

// inquiry is one request and its callers.
type inquiry struct {
	ctx    context.Context
	cancel context.CancelFunc
	// callers is how many wait.
	callers int
	// done is closed when the fields below are set.
	done     chan struct{}
	revision store.Revision
	storage  string
	err      error
}

// overtakeAfter is how long a request waits for the one before it. One that takes longer may have
// met a server, or a connection, that never answers.
const overtakeAfter = time.Second

// ask returns the newest revision and the identity of its storage, "" if the server does
// not send that. The answer is at least as new as the call. A panic of the user's
// transport is a [*usercode.PanicError], and so is a runtime.Goexit.
func (n *newest) ask(ctx context.Context) (store.Revision, string, error) {
	if cause := context.Cause(ctx); cause != nil {
		return 0, "", cause
	}
	q, err := n.join()
	if err != nil {
		return 0, "", err
	}
	defer n.leave(q)
	select {
	case <-q.done:
		return q.revision, q.storage, q.err
	case <-ctx.Done():
		return 0, "", context.Cause(ctx)
	}
}

// join adds a caller to the next request. The first caller of one starts its goroutine.
func (n *newest) join() (*inquiry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, store.ErrClosed
	}
	q := n.next
	if q == nil {
		q = &inquiry{done: make(chan struct{})}
		q.ctx, q.cancel = context.WithCancel(n.life)
		before := n.sent
		n.next = q
		n.running.Go(func() { n.send(q, before) })
	}
	q.callers++
	return q, nil
}

// leave removes a caller. A request without callers is cancelled.
func (n *newest) leave(q *inquiry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if q.callers--; q.callers > 0 {
		return
	}
	if n.next == q {
		n.next = nil
	}
	q.cancel()
}

// send sends a request when the one before it, if any, is answered. One that has no caller
// any more is not sent: it would take the place of the one under way, which the next has
// to wait for.
func (n *newest) send(q, before *inquiry) {
	defer close(q.done)
	if before != nil {
		late := time.NewTimer(overtakeAfter)
		defer late.Stop()
		select {
		case <-before.done:
		case <-late.C:
		case <-q.ctx.Done():
		}
	}
	if q.err = n.begin(q); q.err != nil {
		return
	}
	q.err = &usercode.PanicError{Func: "Config.Client or TokenSource", Value: usercode.ErrGoexit} // unless fetch returns
	err := usercode.Call("Config.Client", "", func() { q.revision, q.storage, q.err = n.fetch(q.ctx) })
	if err != nil {
		q.err = err
	}
}

// begin notes that the request is under way, unless it is cancelled.
func (n *newest) begin(q *inquiry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if q.ctx.Err() != nil {
		return context.Cause(q.ctx)
	}
	n.next, n.sent = nil, q
	return nil
}

// close ends the requests with [store.ErrClosed] and waits for their goroutines.
func (n *newest) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.end(store.ErrClosed)
	n.running.Wait()
}
