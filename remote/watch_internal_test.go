package remote

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
)

// A consumer that waits when its backend is closed is notified, even if events come at the same moment:
// the call of notify that is for them may be late.
func TestWatch_IsNotifiedBeforeItsBackendIsClosed(t *testing.T) {
	for range 100 {
		notified := 0
		w := &watch{backend: &Backend{}, notify: func() { notified++ }, cancel: func() {}, done: make(chan struct{}), waiting: true}
		w.backend.config.BufferBytes = 1
		w.room.L = &w.mu
		close(w.done)

		var both sync.WaitGroup
		ended := make(chan struct{})
		w.notifying.Lock() // as a call that is over in a moment has it
		both.Go(func() { w.put([]received{{event: store.Event{Type: store.Bookmark, Revision: 7}}}) })
		await(w, func() bool { return w.through == 7 })
		both.Go(func() {
			w.end(store.ErrClosed)
			close(ended)
		})
		await(w, func() bool { return w.err != nil })
		w.notifying.Unlock()
		<-ended
		w.Close()
		both.Wait()
		require.Equal(t, 1, notified)
	}
}

// await waits until the state of w is as wanted, and a little longer.
func await(w *watch, wanted func() bool) {
	for done := false; !done; runtime.Gosched() {
		w.mu.Lock()
		done = wanted()
		w.mu.Unlock()
	}
	for range 100 {
		runtime.Gosched()
	}
}
