package bolt_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/codec"
)

// counting counts what it decodes.
type counting struct {
	codec.JSON
	decoded *atomic.Int64
}

func (c counting) Decode(tag uint8, data []byte, into any) error {
	c.decoded.Add(1)
	return c.JSON.Decode(tag, data, into)
}

// aged makes n objects, discards the history until then, and updates every second one. It
// returns the oldest revision, and closes the file.
func (f *fixture) aged(n int) (oldest store.Revision) {
	f.Helper()
	for i := range n {
		f.put(fmt.Sprintf("ns-%d/item-%04d", i%3, i), "old")
	}
	oldest = f.revision()
	require.NoError(f, f.Compact(f.ctx, oldest))
	f.file.Settle()
	for i := 0; i < n; i += 2 {
		f.put(fmt.Sprintf("ns-%d/item-%04d", i%3, i), "new")
	}
	return oldest
}

// An engine that starts lists the oldest state and watches from there. Each value is
// decoded once for both, if that is soon: afterwards the oldest state is not in memory.
func TestRestart_DecodesEachValueOnce(t *testing.T) {
	var decoded atomic.Int64
	f := newFixture(t, func(f *fixture) { f.cfg.Codec = counting{decoded: &decoded} })
	oldest := f.aged(600)
	past := f.list(backend.ListOptions{Revision: oldest})
	defer bolt.SetColdRun(50)()
	decoded.Store(0)
	f.reopen(0)
	require.Equal(t, past, f.list(backend.ListOptions{Revision: oldest}))
	w := f.watchBy(backend.WatchOptions{From: oldest, NoPrev: true})
	defer w.Close()
	last := f.revision()
	events := w.events(last-100, 50)
	require.Len(t, events, 200)
	require.EqualValues(t, 900, decoded.Load())
	for _, ev := range events {
		o, err := f.Get(f.ctx, ev.Key())
		require.NoError(t, err)
		require.Same(t, o, ev.Object)
	}
	some := f.list(backend.ListOptions{Revision: oldest, Prefix: "ns-1", Limit: 50})
	require.EqualValues(t, 900, decoded.Load())
	require.Equal(t, some, f.list(backend.ListOptions{Revision: oldest, Prefix: "ns-1"})[:50])

	f.clock.Advance(time.Hour)
	require.Equal(t, past, f.list(backend.ListOptions{Revision: oldest}))
	require.EqualValues(t, 1200, decoded.Load(), "the 300 that have changed since")
}

// An object of a page that has to be read has none of the others read again.
func TestRestart_ReadsTheObjectsOfAPageThatAreNotInMemory(t *testing.T) {
	var decoded atomic.Int64
	f := newFixture(t, func(f *fixture) { f.cfg.Codec = counting{decoded: &decoded} })
	f.aged(20)
	f.file.StopUpkeep()
	oldest := f.put("ns-1/not in the base", "old").Revision
	require.NoError(t, f.Compact(f.ctx, oldest))
	past := f.list(backend.ListOptions{})
	f.put("ns-1/not in the base", "new")
	f.put("ns-1/item-0001", "new")
	f.reopen(0)
	decoded.Store(0)
	require.Equal(t, past, f.list(backend.ListOptions{Revision: oldest}))
	require.EqualValues(t, 1, decoded.Load())
}

// The oldest state shares objects with the newest, or else their keys.
func TestRestart_OldestStateSharesWithTheNewest(t *testing.T) {
	f := newFixture(t)
	oldest := f.aged(20)
	f.reopen(0)
	l, err := f.List(f.ctx, backend.ListOptions{Revision: oldest})
	require.NoError(t, err)
	for i, o := range l.Items {
		newest, err := f.Get(f.ctx, o.Key)
		require.NoError(t, err)
		if textOf(newest) == "old" {
			require.Same(t, newest, o, "object %d has not changed", i)
			continue
		}
		require.Equal(t, "old", textOf(o))
		require.Same(t, unsafe.StringData(newest.Key), unsafe.StringData(o.Key))
	}
}

// A value that is in the base and was replaced since is not needed: New does not fail if it
// cannot be decoded, but a list of the state that has it does.
func TestRestart_ReplacedValueThatCannotBeDecodedIsNoErrorUntilItIsListed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // with one, the caller's decodes
	for name, broken := range map[string]codec.Codec{"an error": failing{"old"}, "the end of the goroutine": fatal{"old"}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("a", "old")
			for i := range 600 { // more than one goroutine decodes
				f.put(fmt.Sprint("b-", i), "fine")
			}
			oldest := f.revision()
			require.NoError(t, f.Compact(f.ctx, oldest))
			f.file.Settle()
			f.put("a", "fine")
			newest := f.list(backend.ListOptions{})
			f.cfg.Codec = broken
			f.reopen(0)
			require.Equal(t, newest, f.list(backend.ListOptions{}))
			if name == "an error" {
				_, err := f.List(f.ctx, backend.ListOptions{Revision: oldest})
				require.ErrorIs(t, err, backend.ErrUndecodable)
				require.ErrorContains(t, err, `"a"`)
			}
		})
	}
}

// failing cannot decode a text.
type failing struct{ text string }

func (failing) Encode(value any) (uint8, []byte, error) { return codec.JSON{}.Encode(value) }

func (c failing) Decode(tag uint8, data []byte, into any) error {
	if strings.Contains(string(data), c.text) {
		return fmt.Errorf("%q is not legible", c.text)
	}
	return codec.JSON{}.Decode(tag, data, into)
}

// Objects of the base expire like others.
func TestRestart_ObjectsOfTheBaseExpire(t *testing.T) {
	f := newFixture(t)
	f.putFor(time.Hour, "a", "1")
	f.put("b", "2")
	require.NoError(t, f.Compact(f.ctx, f.revision()))
	f.file.Settle()
	f.put("b", "3")
	f.reopen(0)
	require.Len(t, f.list(backend.ListOptions{}), 2)
	last := f.revision()
	w := f.watch(last, "")
	defer w.Close()
	f.clock.Advance(time.Hour)
	require.Len(t, w.read(last+1, 10), 1)
	require.Len(t, f.list(backend.ListOptions{}), 1)
}
