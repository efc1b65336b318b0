package enginetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// What a [Source] fails with if it is told no error of the test's own.
var (
	// ErrReset: the watch was broken by [Source.ResetWatches].
	ErrReset = errors.New("watch was reset by the test")
	// ErrInjected: the call failed because of [Source.FailList] or
	// [Source.FailWatch].
	ErrInjected = errors.New("failed by the test")
)

// SourceOptions says what kind of storage a [Source] plays. The zero value is
// like memory.
type SourceOptions struct {
	// Clock is the time of the storage, nil the real one. The clock of the host
	// (engine.Host.Clock) has timers in common with the engine.
	Clock actors.Clock
	// Blocks has the engine call List and Watch where they may block.
	Blocks bool
	// Sparse: revisions have gaps, as when storage is shared with others. A
	// change that is hidden from a watch is then lost; otherwise its missing
	// number gives it away.
	Sparse bool
}

// Source is versioned storage in memory that fails as it is told, to be given
// as engine.Config.Backend. Writes through an engine and by its own Add, Modify
// and Delete are the same.
//
//	engine, Add, Modify, Delete ──▶ memory ──▶ watches ──Next──▶ Reflector
//	                                  ▲           ▲
//	             FailList, FailWatch ─┘           └─ Stall, ResetWatches, Hide, Repeat
//
// All methods are safe for concurrent use, none blocks and none starts a
// goroutine. Faults are not to be told from within a watch's Notify.
type Source[T any] struct {
	*source
	schema store.Schema
}

// source is a Source whatever the type of its objects.
type source struct {
	backend.Backend
	memory *memory.Backend
	traits backend.Traits

	// hiding is held while changes are made that watches must not see, and
	// shared by those who read changes.
	hiding sync.RWMutex

	mu         sync.Mutex // guards what follows; never held while others are called
	lists      failures
	watches    failures
	running    []*sourceWatcher // in the order they were started
	stalled    bool
	hidden     map[store.Revision]bool
	listCalls  int
	watchCalls int
}

var (
	_ backend.Backend = (*Source[int])(nil)
	_ backend.Emitter = (*Source[int])(nil)
)

// failures is a number of calls to fail.
type failures struct {
	left int
	err  error
}

// next returns what the next call fails with, nil if it does not.
func (f *failures) next() error {
	if f.left == 0 {
		return nil
	}
	f.left--
	return f.err
}

// NewSource returns empty storage for objects as cfg describes them, of which
// only Key, Labels, Fields, Size and Equal are used. It takes at most one
// SourceOptions; of several, the first counts.
func NewSource[T any](cfg engine.Config[T], opts ...SourceOptions) *Source[T] {
	var o SourceOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	s := &source{
		traits: backend.Traits{Blocks: o.Blocks, Contiguous: !o.Sparse},
		hidden: make(map[store.Revision]bool),
	}
	schema := cfg.Schema()
	// The only error is that of limits, and none are given.
	s.memory, _ = memory.New(schema, memory.Options{Clock: o.storageClock()})
	s.Backend = s.memory
	return &Source[T]{s, schema}
}

func (o SourceOptions) storageClock() backend.Clock {
	if o.Clock == nil {
		return nil
	}
	return storageClock{o.Clock}
}

// storageClock is a clock as a backend takes it.
type storageClock struct{ actors.Clock }

// AfterFunc is the clock's, by the backend's name for timers.
func (c storageClock) AfterFunc(d time.Duration, f func()) backend.Timer {
	return c.Clock.AfterFunc(d, f)
}

// Traits are as the options say.
func (s *source) Traits() backend.Traits { return s.traits }

// List returns a page of objects, unless it is to fail.
func (s *source) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	s.mu.Lock()
	s.listCalls++
	err := s.lists.next()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.memory.List(ctx, opts)
}

// Emit passes a value through.
func (s *source) Emit(ctx context.Context, draft *store.Object) (*store.Object, error) {
	return s.memory.Emit(ctx, draft)
}

// ListCalls returns how often List was called.
func (s *source) ListCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listCalls
}

// WatchCalls returns how often Watch was called.
func (s *source) WatchCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watchCalls
}
