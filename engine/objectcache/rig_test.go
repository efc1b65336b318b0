package objectcache_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// maxIdle and retry are those of the rigs.
const (
	maxIdle = time.Minute
	retry   = time.Second
)

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	require.TestingT
	Helper()
}

// rig is a cache on a deterministic host: nothing happens between two calls but
// what settle runs, and time passes only when told to.
type rig struct {
	t        tester
	clock    *enginetest.VirtualClock
	executor *actors.Seeded
	host     *engine.Host
	source   *spy
	cache    *objectcache.Cache[secret]

	mu   sync.Mutex
	told []error // to OnError
}

// newRig starts one. The caller closes it.
func newRig(t tester, seed uint64, change ...func(*objectcache.Config[secret])) *rig {
	r := &rig{t: t, clock: enginetest.NewVirtualClock(), executor: actors.NewSeeded(seed)}
	var err error
	r.host, err = engine.NewHost(engine.HostConfig{Clock: r.clock, Executor: r.executor, Seed: seed | 1<<63})
	require.NoError(t, err)
	r.source = newSpy(enginetest.SourceOptions{Clock: r.host.Clock()})
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

// started returns a rig that is closed when the test ends.
func started(t interface {
	tester
	Cleanup(func())
}, change ...func(*objectcache.Config[secret])) *rig {
	r := newRig(t, 1, change...)
	t.Cleanup(r.close)
	return r
}

// close closes the rig, and looks for what it leaves behind.
func (r *rig) close() {
	require.NoError(r.t, r.cache.Close())
	require.NoError(r.t, r.source.Close())
	require.Zero(r.t, r.host.Actors(), "actors outlive the cache: %v", r.host.ActorNames())
	require.Zero(r.t, r.host.Timers(), "timers outlive the cache")
	require.Empty(r.t, r.source.watched(), "watches outlive the cache")
	require.Zero(r.t, r.cache.Stats().Reflectors)
	require.NoError(r.t, r.host.Close())
}

// settle runs until nothing is left to run.
func (r *rig) settle() { r.executor.Run() }

// advance lets d pass, timer by timer.
func (r *rig) advance(d time.Duration) {
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

func (r *rig) acquire(key string) *objectcache.Ref[secret] {
	r.t.Helper()
	ref, err := r.cache.Acquire(key)
	require.NoError(r.t, err)
	return ref
}

// put creates or replaces an object at the source.
func (r *rig) put(s secret) {
	r.t.Helper()
	_, err := r.source.Add(s)
	if errors.Is(err, engine.ErrExists) {
		_, err = r.source.Modify(s)
	}
	require.NoError(r.t, err)
	r.settle()
}

func (r *rig) delete(key string) {
	r.t.Helper()
	_, err := r.source.Delete(key)
	require.NoError(r.t, err)
	r.settle()
}

// requireGet demands that the object has the data.
func (r *rig) requireGet(ref *objectcache.Ref[secret], data string) {
	r.t.Helper()
	o, err := ref.Get(context.Background())
	require.NoError(r.t, err)
	require.Equal(r.t, data, o.Value.Data)
}

// requireErr demands that a read fails, for all of these reasons.
func (r *rig) requireErr(ref *objectcache.Ref[secret], reasons ...error) {
	r.t.Helper()
	o, err := ref.Get(context.Background())
	require.Nil(r.t, o)
	for _, reason := range reasons {
		require.ErrorIs(r.t, err, reason)
	}
}

// requireRunning demands that there are Reflectors for these keys and no others.
func (r *rig) requireRunning(keys ...string) {
	r.t.Helper()
	r.settle()
	require.Equal(r.t, len(keys), r.host.Actors()-1, "Reflectors, by the host's count")
	require.Equal(r.t, len(keys), r.cache.Stats().Reflectors)
	require.ElementsMatch(r.t, keys, r.source.watched())
}
