package etcd_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/codec"
	"github.com/watchmill/watchmill/usercode"
)

// fatal is a codec that ends the goroutine that decodes a text, as t.FailNow does.
type fatal struct{ text string }

func (fatal) Encode(value any) (uint8, []byte, error) { return codec.JSON{}.Encode(value) }

func (c fatal) Decode(tag uint8, data []byte, into any) error {
	if strings.Contains(string(data), c.text) {
		runtime.Goexit()
	}
	return codec.JSON{}.Decode(tag, data, into)
}

// A watch whose goroutine is ended by user code says so, and does not just fall silent.
func TestWatch_EndsIfUserCodeEndsItsGoroutine(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.Codec = fatal{"bad"} })
	w := f.watch(f.revision(), "")
	f.create("a", "good")
	f.create("b", "bad")
	events, err := w.end()
	require.Equal(t, []string{"ADDED a=good was -"}, events)
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.ErrorIs(t, err, usercode.ErrGoexit)
}

// SetRevision is called after the write was done, so its panic must not look as if nothing was written.
func TestPut_WhoseSchemaPanicsAfterItIsUncertain(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) {
		c.Schema.SetRevision = func(*store.Object, store.Revision) { panic("no room") }
	})
	_, err := f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.NotEmpty(t, f.stored("a"))
}

// OnError ends no watch.
func TestWatch_GoesOnIfOnErrorEndsItsGoroutine(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.OnError = func(error) { runtime.Goexit() } })
	w := f.watch(f.revision(), "")
	_, err := f.raw.Put(f.ctx, f.place("no//key"), "x")
	require.NoError(t, err)
	last := f.create("a", "1")
	require.Equal(t, []string{"ADDED a=1 was -"}, w.read(last.Revision))
}

// leave returns a watch of b that waits, whose Notify ends the goroutine that calls it.
func leave(f *fixture, b *etcd.Backend) backend.Watcher {
	w, err := b.Watch(f.ctx, backend.WatchOptions{Notify: runtime.Goexit})
	require.NoError(f, err)
	batch, err := w.Next(1)
	require.NoError(f, err)
	require.Empty(f, batch.Events)
	return w
}

// Close ends all watches, and closes the client, even if the Notify of one ends the goroutine.
func TestClose_EndsAllIfNotifyEndsTheGoroutine(t *testing.T) {
	f := newFixture(t)
	f.cfg.Prefix = newPrefix()
	b := f.open()
	watches := []backend.Watcher{leave(f, b), leave(f, b), leave(f, b)}
	apart(func() { _ = b.Close() })
	for _, w := range watches {
		_, err := w.Next(1)
		require.ErrorIs(t, err, store.ErrClosed)
	}
	require.True(t, b.ClientIsClosed())
}

// apart runs fn in a goroutine, which user code may end.
func apart(fn func()) {
	var wg sync.WaitGroup
	wg.Go(fn)
	wg.Wait()
}

// The floor that other processes raise is followed also after the Notify of a watch has ended
// the goroutine.
func TestCompact_IsFollowedAfterNotifyHasEndedTheGoroutine(t *testing.T) {
	f := newFixture(t)
	other := f.open()
	for i := range 2 {
		last := f.foreign("a", strings.Repeat("x", i+1))
		leaving := leave(f, f.Backend) // which is beyond the floor, and so waits when that is raised
		require.NoError(t, other.Compact(f.ctx, last))
		require.Eventually(t, func() bool { return f.Floor() == last }, patience, time.Millisecond)
		leaving.Close()
	}
}
