package remote

import (
	"net/http"
	"sync"
)

// renewing is a transport that leaves its connections after a 401: they keep the certificate that they began with,
// and a server may refuse it on each request once it has expired, while the next connection shows the one that has
// been renewed. Requests that are in progress go on.
type renewing struct {
	mu sync.Mutex
	// now has the connections of new requests, and before those of the last ones that a 401 was for; nil at first.
	now, before *http.Transport
}

// RoundTrip sends a request.
func (r *renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	by := r.now
	r.mu.Unlock()
	resp, err := by.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		r.leave(by)
	}
	return resp, err
}

// leave has new requests open connections of their own, if they do not already.
func (r *renewing) leave(refused *http.Transport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != refused {
		return
	}
	r.closeIdle()
	r.now, r.before = refused.Clone(), refused
}

// CloseIdleConnections closes the connections that have no request. [http.Client] calls it.
func (r *renewing) CloseIdleConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeIdle()
}

// closeIdle is CloseIdleConnections for a caller that holds r.mu.
func (r *renewing) closeIdle() {
	r.now.CloseIdleConnections()
	if r.before != nil {
		r.before.CloseIdleConnections()
	}
}
