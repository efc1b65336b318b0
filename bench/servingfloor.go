package bench

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// bareServer is the floor of serving: a handler of net/http that writes frames which are
// encoded once, without positions or bookmarks. Of selectors it knows one node, and compares
// that of each frame.
type bareServer struct {
	mu     sync.Mutex
	frames []bareFrame
	names  map[string]bool
	list   []byte
	more   chan struct{} // closed when there is another frame
}

// bareFrame is an event as it is sent, and the node that its object has.
type bareFrame struct {
	node string
	text []byte
}

func openBare(context.Context) (Server, error) {
	return &bareServer{more: make(chan struct{}), names: map[string]bool{}}, nil
}

// Write appends a frame, and adds a new object to the list.
func (s *bareServer) Write(_ context.Context, o Object) (uint64, error) {
	object := fmt.Sprintf(`{"kind":"Pod","apiVersion":"bench.watchmill/v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":"1790000000000000","labels":{"app":%q},"annotations":{"seq":"%d"}},"spec":{"nodeName":%q}}`,
		o.Name, Namespace, o.App, o.Seq, o.Node)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.names[o.Name] {
		s.names[o.Name] = true
		s.list = append(append(s.list, object...), ',')
	}
	s.frames = append(s.frames, bareFrame{o.Node, []byte(`{"type":"MODIFIED","object":` + object + "}\n")})
	close(s.more)
	s.more = make(chan struct{})
	return uint64(len(s.frames)), nil
}

// from returns the frames from the i-th on, and a channel that is closed when there are
// more.
func (s *bareServer) from(i int) ([]bareFrame, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames[i:], s.more
}

func (s *bareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !r.URL.Query().Has("watch") {
		s.mu.Lock()
		list := s.list
		s.mu.Unlock()
		_, _ = w.Write(list) // a client that is gone needs no answer
		return
	}
	position, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	node, one := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), NodeField+"=")
	flush := http.NewResponseController(w)
	for r.Context().Err() == nil {
		frames, more := s.from(position)
		for _, frame := range frames {
			if !one || frame.node == node {
				_, _ = w.Write(frame.text)
			}
		}
		position += len(frames)
		_ = flush.Flush() // a client that is gone ends the context
		if len(frames) > 0 {
			continue
		}
		select {
		case <-more:
		case <-r.Context().Done():
		}
	}
}

func (s *bareServer) WaitFor(context.Context, uint64) error { return nil }
func (s *bareServer) Handler() http.Handler                 { return s }
func (s *bareServer) Path() string                          { return "/pods" }
func (s *bareServer) Close() error                          { return nil }

// bare is the floor of serving as a contender.
var bare = Contender{Name: "net/http", Server: openBare}

func servedFloor(timed int, over opening) func(context.Context, Params) (Result, error) {
	return func(ctx context.Context, p Params) (Result, error) { return served(timed, over)(ctx, bare, p) }
}

func idleFloor(open func(s *wire, ctx context.Context, from uint64, n int) error, over opening) func(context.Context, Params) (Result, error) {
	return func(ctx context.Context, p Params) (Result, error) { return idleServed(open, over)(ctx, bare, p) }
}

func listServedFloor(ctx context.Context, p Params) (Result, error) { return listServed(ctx, bare, p) }
