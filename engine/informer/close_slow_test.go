package informer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/backend"
)

// parting is a source that says when its watch has been closed.
type parting struct {
	*enginetest.Source[pod]
	parted chan struct{}
}

func (p *parting) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := p.Source.Watch(ctx, opts)
	return &partingWatcher{Watcher: w, parted: p.parted}, err
}

type partingWatcher struct {
	backend.Watcher
	once   sync.Once
	parted chan struct{}
}

func (w *partingWatcher) Close() {
	w.Watcher.Close()
	w.once.Do(func() { close(w.parted) })
}

// Close waits for what a handler is being told, not for all that it was to be
// told: with much ahead of a slow one that could be for ever.
func TestPain_CloseDoesNotWaitForAHandlersBacklog(t *testing.T) {
	source := enginetest.NewSource(podConfig())
	t.Cleanup(func() { require.NoError(t, source.Close()) })
	for n := range 100 {
		_, err := source.Add(pod{Name: fmt.Sprint(n)})
		require.NoError(t, err)
	}
	parted := make(chan struct{})
	s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](&parting{source, parted})})
	require.NoError(t, err)
	require.NoError(t, s.Synced(t.Context()))
	told := 0
	handle, err := s.Subscribe(func(informer.Notification[pod]) {
		told++
		s.Stop()
		<-parted
	}, informer.HandlerOptions{})
	require.NoError(t, err)
	<-handle.Done()
	require.NoError(t, s.Close())
	require.Equal(t, 1, told)
}
