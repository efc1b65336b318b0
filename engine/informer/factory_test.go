package informer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
)

func TestFactory_SharesByNameAndCountsLeases(t *testing.T) {
	r := newFixture(t, nil) // for its host
	source := enginetest.NewSource(podConfig())
	f := &informer.Factory{Host: r.host}
	made := 0
	acquire := func(name string) *informer.Lease[pod] {
		lease, err := informer.Acquire(f, name, func() informer.Config[pod] {
			made++
			return informer.Config[pod]{Source: engine.SourceOf[pod](source)}
		})
		require.NoError(t, err)
		return lease
	}
	first, second, other := acquire("pods"), acquire("pods"), acquire("others")
	_, err := first.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{Name: "shared"})
	require.NoError(t, err)
	r.executor.Run()
	require.Equal(t, 1, second.Stats().Handlers, "they are one informer")
	require.Zero(t, other.Stats().Handlers)
	require.Equal(t, "pods", first.Name())
	require.Equal(t, 2, made)
	require.Equal(t, 2, f.Len())
	require.NoError(t, first.WaitSynced(t.Context()))
	before := source.WatchCalls()

	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "a lease ends once")
	require.NoError(t, second.Err(), "it is still in use")
	require.NoError(t, second.Close())
	require.ErrorIs(t, second.Err(), informer.ErrClosed, "the last user stops the stream")
	require.Equal(t, 1, f.Len())

	again := acquire("pods")
	require.NoError(t, again.WaitSynced(t.Context()))
	require.Greater(t, source.WatchCalls(), before)
	require.NoError(t, again.Close())
	require.NoError(t, other.Close())
	require.NoError(t, source.Close())
}

// It is refused also where it would not be called.
func TestFactory_RefusesNoConfiguration(t *testing.T) {
	r := newFixture(t, nil) // for its host
	source := enginetest.NewSource(podConfig())
	f := &informer.Factory{Host: r.host}
	lease, err := informer.Acquire(f, "pods", func() informer.Config[pod] { return informer.Config[pod]{Source: engine.SourceOf[pod](source)} })
	require.NoError(t, err)
	for _, name := range []string{"pods", "others"} {
		_, err := informer.Acquire[pod](f, name, nil)
		require.ErrorIs(t, err, informer.ErrConfig)
		require.ErrorContains(t, err, "configure is nil")
	}
	require.NoError(t, lease.Close())
	require.NoError(t, source.Close())
}

// The last lease is closed while a handler runs, which releases the lease, too.
func TestFactory_AHandlerMayReleaseALeaseThatIsBeingClosed(t *testing.T) {
	for name, release := range map[string]func(*testing.T, *informer.Lease[pod]){
		"stop":  func(_ *testing.T, lease *informer.Lease[pod]) { lease.Stop() },
		"close": func(t *testing.T, lease *informer.Lease[pod]) { require.ErrorIs(t, lease.Close(), engine.ErrInHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := enginetest.NewSource(podConfig())
				lease, err := informer.Acquire(new(informer.Factory), "pods", func() informer.Config[pod] {
					return informer.Config[pod]{Source: engine.SourceOf[pod](source)}
				})
				require.NoError(t, err)
				handling, closing := make(chan struct{}), make(chan struct{})
				_, err = lease.Subscribe(func(informer.Notification[pod]) {
					close(handling)
					<-closing
					release(t, lease)
				}, informer.HandlerOptions{})
				require.NoError(t, err)
				_, err = source.Add(pod{Name: "a"})
				require.NoError(t, err)
				<-handling
				began, closed := time.Now(), make(chan error, 1)
				go func() { closed <- lease.Close() }()
				synctest.Wait()
				close(closing)
				require.NoError(t, <-closed)
				require.Zero(t, time.Since(began), "neither has waited for the other")
				require.NoError(t, source.Close())
			})
		})
	}
}

func TestFactory_ReplacesAnInformerThatEnded(t *testing.T) {
	r := newFixture(t, nil)
	source := enginetest.NewSource(podConfig())
	source.FailList(1, store.ErrUnsupported)
	f := &informer.Factory{Host: r.host}
	configure := func() informer.Config[pod] { return informer.Config[pod]{Source: engine.SourceOf[pod](source)} }
	dead, err := informer.Acquire(f, "pods", configure)
	require.NoError(t, err)
	require.ErrorIs(t, dead.WaitSynced(t.Context()), store.ErrUnsupported)
	alive, err := informer.Acquire(f, "pods", configure)
	require.NoError(t, err)
	require.NoError(t, alive.WaitSynced(t.Context()))
	require.NoError(t, dead.Close())
	require.Equal(t, 1, f.Len())
	require.NoError(t, alive.Close())

	_, err = informer.Acquire(f, "none", func() informer.Config[pod] { return informer.Config[pod]{} })
	require.ErrorIs(t, err, informer.ErrConfig)
	require.Zero(t, f.Len())
	require.NoError(t, source.Close())
}
