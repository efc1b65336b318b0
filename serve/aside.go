package serve

import (
	"net/http"
	"strings"
)

// mayWatch reports whether the request is over HTTP/2 and may be a watch. Requests that only
// have the word in their query or path are served aside, too, which changes nothing for them.
func (c *call) mayWatch() bool {
	return c.w.OfStream() && (strings.Contains(c.r.URL.RawQuery, "watch") || strings.Contains(c.r.URL.Path, "/watch/"))
}

// serveAside is serve on a goroutine that ends with it:
//
//	the request's goroutine ── waits ─────────────────────────────▶ events
//	                  └──▶ parse, authenticate, authorize, begin ──┘
//
// So the stack of a watch's goroutine does not keep the 8 kB that these steps need. It has
// 4 kB until the watch encodes an object.
func (c *call) serveAside() {
	served, done := false, make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // http.ErrAbortHandler, since contain answers any other
		c.serveContained()
		served = true
	}()
	<-done
	if !served {
		panic(http.ErrAbortHandler)
	}
}

// serveContained is serve with a panic contained.
func (c *call) serveContained() {
	returned := false
	defer c.contain(&returned)
	c.serve()
	returned = true
}
