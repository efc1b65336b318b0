package objectcache_test

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/store/backend"
)

// secret is the object of these tests.
type secret struct {
	Name, Data string
	Immutable  bool
}

func secretConfig() engine.Config[secret] {
	return engine.Config[secret]{Key: func(s secret) string { return s.Name }}
}

func immutable(s secret) bool { return s.Immutable }

// spy is a source that knows what is asked of it for which key.
type spy struct {
	*enginetest.Source[secret]
	// gate, if set, is called in each List, and may block.
	gate func(ctx context.Context, key string)

	mu      sync.Mutex
	listing map[string]int // lists in progress
	open    map[string]int // watches that run
	most    int            // the most of both for one key at any time
}

func newSpy(opts enginetest.SourceOptions) *spy {
	return &spy{
		Source:  enginetest.NewSource(secretConfig(), opts),
		listing: map[string]int{}, open: map[string]int{},
	}
}

func (s *spy) add(to map[string]int, key string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to[key] += n; to[key] == 0 {
		delete(to, key)
	}
	s.most = max(s.most, s.listing[key]+s.open[key])
}

// watched returns the keys with a running watch, in order.
func (s *spy) watched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.open))
}

// mostAtOnce returns the most lists and watches that one key had at any time.
func (s *spy) mostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func (s *spy) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	s.add(s.listing, opts.Prefix, 1)
	defer s.add(s.listing, opts.Prefix, -1)
	if s.gate != nil {
		s.gate(ctx, opts.Prefix)
	}
	return s.Source.List(ctx, opts)
}

func (s *spy) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := s.Source.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	s.add(s.open, opts.Prefix, 1)
	return &spiedWatch{Watcher: w, closed: func() { s.add(s.open, opts.Prefix, -1) }}, nil
}

type spiedWatch struct {
	backend.Watcher
	once   sync.Once
	closed func()
}

func (w *spiedWatch) Close() {
	w.Watcher.Close()
	w.once.Do(w.closed)
}
