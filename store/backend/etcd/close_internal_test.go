package etcd

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// slowLife is a context that ends in two steps: once everything has happened that follows from
// the end of the contexts with values which are made of it, its own children end. Those of package
// context end in any order.
type slowLife struct {
	context.Context
	done chan struct{}

	mu       sync.Mutex // guards all below
	err      error
	children []func()
}

func (l *slowLife) Done() <-chan struct{} { return l.done }

func (l *slowLife) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// AfterFunc is how package context makes a child of a context that is not its own.
func (l *slowLife) AfterFunc(end func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.children = append(l.children, end)
	return func() bool { return false } // a child that has ended may be told once more
}

func (l *slowLife) end(cause error) {
	l.mu.Lock()
	l.err = cause
	l.mu.Unlock()
	close(l.done)
	synctest.Wait()
	for _, end := range l.children {
		end()
	}
}

// idleMember is a watcher of the client that closes a stream when its context ends, as the client
// does. It accepts streams, unless it is silent.
type idleMember struct {
	clientv3.Watcher
	silent bool
}

func (m idleMember) Watch(ctx context.Context, _ string, _ ...clientv3.OpOption) clientv3.WatchChan {
	responses := make(chan clientv3.WatchResponse, 1)
	if !m.silent {
		responses <- clientv3.WatchResponse{Created: true}
	}
	context.AfterFunc(ctx, func() { close(responses) })
	return responses
}

// watchable returns a backend that has calls, and watches of the member.
func watchable(m idleMember) *Backend {
	b := callable()
	b.client, b.keys, b.watches = &clientv3.Client{Watcher: m}, newKeyspace("/p"), map[*watcher]struct{}{}
	b.config = b.config.withDefaults()
	life := &slowLife{Context: context.Background(), done: make(chan struct{})}
	b.life, b.end = life, life.end
	return b
}

// The client closes the stream of a watch because the backend is closed. The watch says that, and not that
// the client was closed.
func TestClose_IsTheReasonWhyAWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := watchable(idleMember{})
		w := b.newWatcher(backend.WatchOptions{From: 1, Notify: func() {}})
		s, err := w.open(t.Context())
		require.NoError(t, err)
		require.True(t, b.start(w, s))
		require.NoError(t, b.Close())
		_, err = w.Next(1)
		require.ErrorIs(t, err, store.ErrClosed)
		w.Close()
	})
}

// A watch that is being opened fails for the same reason.
func TestClose_IsTheReasonWhyAWatchIsNotOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := watchable(idleMember{silent: true})
		ctx, call, err := b.begin(t.Context())
		require.NoError(t, err)
		failed := make(chan error, 1)
		go func() {
			defer call.end()
			w := b.newWatcher(backend.WatchOptions{From: 1, Notify: func() {}})
			defer w.stop()
			_, err := w.open(ctx)
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, b.Close())
		require.ErrorIs(t, <-failed, store.ErrClosed)
	})
}

// overdueMember accepts a stream when the call that opens it is over.
type overdueMember struct {
	idleMember
	over func()
}

func (m overdueMember) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	defer m.over()
	return m.idleMember.Watch(ctx, key, opts...)
}

// A call that is over when etcd accepts its watch fails as one that is over before that. Chance decides
// which of the two is seen first.
func TestOpen_OverdueWhenItIsAcceptedIsUnavailable(t *testing.T) {
	for range 100 {
		b := watchable(idleMember{})
		ctx, overdue := context.WithCancelCause(t.Context())
		b.client.Watcher = overdueMember{over: func() { overdue(errNoAnswer) }}
		w := b.newWatcher(backend.WatchOptions{From: 1, Notify: func() {}})
		_, err := w.open(ctx)
		require.ErrorIs(t, err, backend.ErrUnavailable)
		w.stop()
	}
}
