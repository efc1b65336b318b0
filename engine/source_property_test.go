package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Whatever is written and however they read: each watch sees all that is for it, in
// order, is notified when there is something, and expires only by what is for it.
func TestSource_WatchesSeeAllThatIsForThem(t *testing.T) {
	prefixes := []string{"", "a", "a/", "a/b", "b/c", "nothing"}
	rapid.Check(t, func(rt *rapid.T) {
		h := newSourceHistory(t, rt)
		defer h.engine.Close()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0:
				h.open(rapid.SampledFrom(prefixes).Draw(rt, "prefix"))
			case 1, 2, 3:
				h.write("at once")
				h.executor.Run()
				h.requireNotified()
			case 4:
				h.pass(100 * time.Millisecond)
			case 5:
				h.storage.BreakWatches(errOutage)
				h.executor.Run()
				h.write("during an outage")
				h.pass(3 * time.Second)
				h.requireNotified()
			case 6:
				if len(h.readers) > 0 {
					h.read(rapid.IntRange(0, len(h.readers)-1).Draw(rt, "reader"))
				}
			}
		}
		for _, r := range h.readers {
			r.Close()
		}
	})
}

// sourceHistory is what is drawn for one engine: what is written to it, and the
// watches of its source.
type sourceHistory struct {
	*fixture
	rt            *rapid.T
	window, chunk int      // sizes of the engine's window
	written       []string // keys, in order
	readers       []*sourceReader
}

// sourceReader is a watch of a prefix, and how far it has come.
type sourceReader struct {
	*followed
	prefix string
	at     int  // how many of the written keys are behind it
	idle   bool // its last read gave nothing: it wants to be notified
}

func newSourceHistory(t *testing.T, rt *rapid.T) *sourceHistory {
	h := &sourceHistory{rt: rt, window: 8, chunk: 2}
	h.fixture = newFixture(t, func(_ *engine.HostConfig, cfg *engine.Config[thing]) {
		cfg.Window = engine.Window{MaxEvents: h.window, ChunkSize: h.chunk}
	})
	return h
}

func (h *sourceHistory) open(prefix string) {
	h.readers = append(h.readers, &sourceReader{followed: h.follow(prefix), prefix: prefix, at: len(h.written), idle: true})
}

func (h *sourceHistory) write(label string) {
	keys := []string{"a", "a/b", "a/b/c", "ab", "b/c"}
	for _, key := range rapid.SliceOfN(rapid.SampledFrom(keys), 1, 3).Draw(h.rt, label) {
		h.fixture.write(key)
		h.written = append(h.written, key)
	}
}

// nextFor returns the position of the first key that is for a reader and not behind it,
// and -1 if there is none.
func (h *sourceHistory) nextFor(r *sourceReader) int {
	i := slices.IndexFunc(h.written[r.at:], func(key string) bool { return store.HasPrefix(key, r.prefix) })
	if i < 0 {
		return -1
	}
	return r.at + i
}

func (h *sourceHistory) requireNotified() {
	for _, r := range h.readers {
		require.False(h.rt, r.idle && h.nextFor(r) >= 0 && r.notified == 0, "%q was not notified of %q", r.prefix, h.written[r.at:])
	}
}

// read reads the i-th watch once, which ends and leaves the history if more keys
// follow the next one for it than the window keeps.
func (h *sourceHistory) read(i int) {
	r := h.readers[i]
	r.notified = 0
	batch, err := r.Next(rapid.IntRange(1, 3).Draw(h.rt, "max"))
	if err != nil {
		next := h.nextFor(r)
		require.ErrorIs(h.rt, err, engine.ErrExpired, "%q", r.prefix)
		require.True(h.rt, next >= 0 && len(h.written)-next > h.window-h.chunk, "%q: %v", r.prefix, err)
		h.readers = slices.Delete(h.readers, i, i+1)
		return
	}
	for _, ev := range batch.Events {
		next := h.nextFor(r)
		require.GreaterOrEqual(h.rt, next, 0, "%q sees %v", r.prefix, ev)
		require.Equal(h.rt, h.written[next], ev.Key())
		require.EqualValues(h.rt, next+2, ev.Revision, "the first revision is storage's own")
		r.at = next + 1
	}
	r.idle = len(batch.Events) == 0
	require.False(h.rt, r.idle && h.nextFor(r) >= 0, "%q has missed something", r.prefix)
}
