package objectcache_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/store/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret is the object of these tests.
type secret struct {
	Name, Data string
	Immutable  bool
}

func secretConfig() engine.Config[secret] {
	return engine.Config[secret]{Key: func(s secret) string { return s.Name }}
}

func immutable(s secret) bool { return s.Immutable }

// spySource is a source that counts the lists and watches of each key.
type spySource struct {
	*enginetest.Source[secret]
	// gate, if set, is called in each List, and may block.
	gate func(ctx context.Context, key string)
	// closed, if set, is called once, when a watch has been closed.
	closed atomic.Pointer[func()]
	// identified is how often the storage was asked for its identity, as before each list.
	identified atomic.Int32

	mu      sync.Mutex
	listing map[string]int // lists in progress
	open    map[string]int // watches that run
	most    int            // the most of both for one key at any time
}

func newSpySource(opts enginetest.SourceOptions) *spySource {
	return &spySource{
		Source:  enginetest.NewSourceWith(secretConfig(), opts),
		listing: map[string]int{}, open: map[string]int{},
	}
}

func (s *spySource) StoreID(ctx context.Context) (string, error) {
	s.identified.Add(1)
	return backend.StoreID(ctx, s.Source)
}

func (s *spySource) add(to map[string]int, key string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to[key] += n; to[key] == 0 {
		delete(to, key)
	}
	s.most = max(s.most, s.listing[key]+s.open[key])
}

// watched returns the keys with a running watch, in order.
func (s *spySource) watched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.open))
}

// mostAtOnce returns the most lists and watches that one key had at any time.
func (s *spySource) mostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func (s *spySource) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	s.add(s.listing, opts.Prefix, 1)
	defer s.add(s.listing, opts.Prefix, -1)
	if s.gate != nil {
		s.gate(ctx, opts.Prefix)
	}
	return s.Source.List(ctx, opts)
}

func (s *spySource) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := s.Source.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	s.add(s.open, opts.Prefix, 1)
	return &spyWatch{Watcher: w, closed: func() {
		s.add(s.open, opts.Prefix, -1)
		run(&s.closed)
	}}, nil
}

type spyWatch struct {
	backend.Watcher
	once   sync.Once
	closed func()
}

func (w *spyWatch) Close() {
	w.Watcher.Close()
	w.once.Do(w.closed)
}

// maxIdle and retry are those of fixtures.
const (
	maxIdle = time.Minute
	retry   = time.Second
)

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	require.TestingT
	Helper()
}

// fixture is a cache on a deterministic host: nothing happens between two calls but
// what settle runs, and time passes only in advance.
type fixture struct {
	t        tester
	clock    *enginetest.VirtualClock
	executor *actors.Seeded
	host     *engine.Host
	source   *spySource
	cache    *objectcache.Cache[secret]

	mu   sync.Mutex
	told []error // to OnError
}

// newOpenFixture returns a fixture that the caller closes.
func newOpenFixture(t tester, seed uint64, change ...func(*objectcache.Config[secret])) *fixture {
	return newFixtureOn(t, seed, func(c clock.Clock) clock.Clock { return c }, change...)
}

// newFixtureOn is newOpenFixture whose host has the clock that wrap returns for the virtual one.
func newFixtureOn(t tester, seed uint64, wrap func(clock.Clock) clock.Clock, change ...func(*objectcache.Config[secret])) *fixture {
	r := &fixture{t: t, clock: enginetest.NewVirtualClock(), executor: actors.NewSeeded(seed)}
	var err error
	r.host, err = engine.NewHost(engine.HostConfig{Clock: wrap(r.clock), Executor: r.executor, Seed: seed | 1<<63})
	require.NoError(t, err)
	r.source = newSpySource(enginetest.SourceOptions{Clock: r.host.Clock()})
	cfg := objectcache.Config[secret]{
		Source: engine.SourceOf[secret](r.source), Host: r.host, Immutable: immutable, MaxIdle: maxIdle,
		Backoff: reflector.Backoff{Initial: retry, Max: retry, Factor: 1, Jitter: reflector.NoJitter},
		OnError: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, err)
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	r.cache, err = objectcache.New(cfg)
	require.NoError(t, err)
	return r
}

// newFixture returns a fixture that is closed when the test ends.
func newFixture(t interface {
	tester
	Cleanup(func())
}, change ...func(*objectcache.Config[secret])) *fixture {
	r := newOpenFixture(t, 1, change...)
	t.Cleanup(r.close)
	return r
}

// close closes the fixture, and demands that nothing is left.
func (r *fixture) close() {
	require.NoError(r.t, r.cache.Close())
	require.NoError(r.t, r.source.Close())
	require.Zero(r.t, r.host.Actors(), "actors outlive the cache: %v", r.host.ActorNames())
	require.Zero(r.t, r.host.Timers(), "timers outlive the cache")
	require.Empty(r.t, r.source.watched(), "watches outlive the cache")
	require.Zero(r.t, r.cache.Stats().Reflectors)
	require.NoError(r.t, r.host.Close())
}

// settle runs until nothing is left to run.
func (r *fixture) settle() { r.executor.Run() }

// advance lets d pass, timer by timer.
func (r *fixture) advance(d time.Duration) {
	r.settle()
	end := r.clock.Now().Add(d)
	for {
		next, armed := r.clock.Next()
		if !armed || next.After(end) {
			break
		}
		r.clock.Advance(next.Sub(r.clock.Now()))
		r.settle()
	}
	r.clock.Advance(end.Sub(r.clock.Now()))
}

func (r *fixture) acquire(key string) *objectcache.Ref[secret] {
	r.t.Helper()
	ref, err := r.cache.Acquire(key)
	require.NoError(r.t, err)
	return ref
}

// put creates or replaces an object at the source.
func (r *fixture) put(s secret) {
	r.t.Helper()
	_, err := r.source.Add(s)
	if errors.Is(err, engine.ErrExists) {
		_, err = r.source.Modify(s)
	}
	require.NoError(r.t, err)
	r.settle()
}

func (r *fixture) delete(key string) {
	r.t.Helper()
	_, err := r.source.Delete(key)
	require.NoError(r.t, err)
	r.settle()
}

// requireGet demands that the object has the data.
func (r *fixture) requireGet(ref *objectcache.Ref[secret], data string) {
	r.t.Helper()
	o, err := ref.Get(context.Background())
	require.NoError(r.t, err)
	require.Equal(r.t, data, o.Value.Data)
}

// requireErr demands that a read fails, for all of these reasons.
func (r *fixture) requireErr(ref *objectcache.Ref[secret], reasons ...error) {
	r.t.Helper()
	o, err := ref.Get(context.Background())
	require.Nil(r.t, o)
	for _, reason := range reasons {
		require.ErrorIs(r.t, err, reason)
	}
}

// requireRunning demands that there are Reflectors for these keys and no others.
func (r *fixture) requireRunning(keys ...string) {
	r.t.Helper()
	r.settle()
	require.Equal(r.t, len(keys), r.host.Actors()-1, "Reflectors, by the host's count")
	require.Equal(r.t, len(keys), r.cache.Stats().Reflectors)
	require.ElementsMatch(r.t, keys, r.source.watched())
}

// realCache returns a cache on a host of its own that runs by itself. Both end
// with the test.
func realCache(t *testing.T, change ...func(*objectcache.Config[secret])) (*objectcache.Cache[secret], *spySource) {
	source := newSpySource(enginetest.SourceOptions{Blocks: true})
	cfg := objectcache.Config[secret]{
		Source: engine.SourceOf[secret](source), Immutable: immutable, MaxIdle: maxIdle,
		Backoff: reflector.Backoff{Initial: retry, Max: retry, Factor: 1, Jitter: reflector.NoJitter},
	}
	for _, f := range change {
		f(&cfg)
	}
	cache, err := objectcache.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, cache.Close())
		require.NoError(t, source.Close())
		require.Zero(t, cache.Stats().Keys)
		require.Zero(t, cache.Stats().Reflectors)
		require.Empty(t, source.watched())
	})
	return cache, source
}
