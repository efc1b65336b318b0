package engine

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
)

// The end comes while a follower is about to look, which is after all were told
// of it: nobody would tell that one.
func TestWhoLooksAfterTheEndFindsTheEngineClosed(t *testing.T) {
	e, err := New(Config[string]{Key: func(s string) string { return s }})
	require.NoError(t, err)
	w, err := e.Source().Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	require.NoError(t, err)
	core, looked := e.core.(*core), make(chan error)
	core.sources.mu.Lock()
	go func() {
		_, err := w.Next(1)
		looked <- err
	}()
	for !onAStack("(*followers).look(") {
		runtime.Gosched()
	}
	core.closed.Store(true)
	core.sources.mu.Unlock()
	require.ErrorIs(t, <-looked, ErrEngineClosed)
	w.Close()
	require.NoError(t, e.Close())
}

// onAStack reports whether some goroutine is in the call of a function.
func onAStack(call string) bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(call))
}
