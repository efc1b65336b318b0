package bench

import (
	"context"
	"encoding/json"
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
	if r.Method != http.MethodGet {
		s.serveWrite(w, r)
		return
	}
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

// serveWrite writes the object in a request's body, and answers with it.
func (s *bareServer) serveWrite(w http.ResponseWriter, r *http.Request) {
	var p pod
	err := json.NewDecoder(r.Body).Decode(&p)
	if err == nil {
		var rev uint64
		rev, err = s.writePod(r.Context(), &p)
		p.ResourceVersion = strconv.FormatUint(rev, 10)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(&p) // a client that is gone needs no answer
}

func (s *bareServer) writePod(ctx context.Context, p *pod) (uint64, error) {
	seq, err := strconv.ParseInt(p.Annotations[SeqAnnotation], 10, 64)
	if err != nil {
		return 0, err
	}
	return s.Write(ctx, Object{Name: p.Name, Node: p.Spec.NodeName, App: p.Labels[AppLabel], Seq: seq})
}

func (s *bareServer) WaitFor(context.Context, uint64) error { return nil }
func (s *bareServer) Handler() http.Handler                 { return s }
func (s *bareServer) Path() string                          { return "/pods" }
func (s *bareServer) Close() error                          { return nil }

// bare is the floor of serving as a contender.
var bare = Contender{Name: "net/http", Server: openBare, Custom: openBareCustom}

func openBareCustom(ctx context.Context) (*Endpoint, error) {
	server, err := openBare(ctx)
	if err != nil {
		return nil, err
	}
	return listenAsEndpoint(ctx, server)
}

// onBare returns the floor of a run.
func onBare(run runner) func(context.Context, Params) (Result, error) {
	return func(ctx context.Context, p Params) (Result, error) { return run(ctx, bare, p) }
}
