package bolt_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/window"
)

// story makes random changes of some objects and returns what a watch from before
// them tells, and the state after each.
func (f *fixture) story(seed uint64, changes int) (told []string, states map[store.Revision][]string) {
	f.Helper()
	random := rand.New(rand.NewPCG(seed, seed))
	w := f.watch(f.revision(), "")
	defer w.Close()
	states = map[store.Revision][]string{f.revision(): f.list(backend.ListOptions{})}
	for range changes {
		key := fmt.Sprintf("ns-%d/item-%d", random.IntN(3), random.IntN(5))
		_, err := f.Get(f.ctx, key)
		switch n := random.IntN(10); {
		case n == 0:
			f.emit(key, "emitted")
		case n < 4 && err == nil:
			f.remove(key)
		case n < 6:
			f.putFor(time.Duration(1+random.IntN(3))*time.Hour, key, fmt.Sprint(random.Uint32()))
		default:
			f.put(key, fmt.Sprint(random.Uint32()))
		}
		f.clock.Advance(time.Millisecond)
		states[f.revision()] = f.list(backend.ListOptions{})
	}
	return w.read(f.revision(), 100), states
}

func TestRestart_KeepsStateAndRevision(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.put("b", "2")
	f.put("a", "3")
	f.remove("b")
	f.emit("c", "passing")
	before, rev := f.list(backend.ListOptions{}), f.revision()
	f.reopen(0)
	require.Equal(t, before, f.list(backend.ListOptions{}))
	require.Equal(t, rev, f.revision())
	require.Equal(t, store.Revision(0), f.compacted())
	require.Equal(t, rev+1, f.put("d", "4").Revision)
	f.reopen(0)
	require.Len(t, f.list(backend.ListOptions{}), 2)
}

// Reading the log takes memory for the objects of the oldest state and for those that exist
// at a time, not for all that came and went.
func TestRestart_MemoryIsThatOfTheObjectsAtATime(t *testing.T) {
	f := newFixture(t)
	for i := range 3 {
		f.put(fmt.Sprint("old-", i), "1")
	}
	for i := range 50 {
		f.put(fmt.Sprint("before-", i), "1")
		f.remove(fmt.Sprint("before-", i))
	}
	oldest := f.revision()
	require.NoError(t, f.Compact(f.ctx, oldest))
	f.file.Settle()
	f.remove("old-0")
	for i := range 200 {
		f.put(fmt.Sprint("passing-", i), "1")
		f.remove(fmt.Sprint("passing-", i))
	}
	f.put("old-0", "2")
	f.remove("old-1")
	f.put("passing-7", "2")
	now, past := f.list(backend.ListOptions{}), f.list(backend.ListOptions{Revision: oldest})
	require.Len(t, now, 3)
	require.Len(t, past, 3)
	f.reopen(0)
	require.Equal(t, now, f.list(backend.ListOptions{}))
	require.Equal(t, past, f.list(backend.ListOptions{Revision: oldest}))
	places, err := f.Places()
	require.NoError(t, err)
	require.Equal(t, 4, places, "three that are old, and one at a time")
}

// The objects of the state are shared with readers, so reading the history does not
// write to them.
func TestRestart_ReadingTheHistoryLeavesTheStateAlone(t *testing.T) {
	f := newFixture(t)
	f.put("ns-1/item-1", "1")
	f.put("ns-1/item-1", "1")
	last := f.revision()
	f.reopen(0)
	o, err := f.Get(f.ctx, "ns-1/item-1")
	require.NoError(t, err)
	key := unsafe.StringData(o.Key)
	w := f.watch(1, "")
	defer w.Close()
	require.Len(t, w.read(last, 10), 2)
	require.Same(t, key, unsafe.StringData(o.Key))
}

// Versions of an object hold equal attributes once, whether they are in the state or
// only in the file.
func TestRestart_VersionsInTheFileShareAttributes(t *testing.T) {
	f := newFixture(t)
	for range 2 { // the text is also a label
		for _, text := range []string{"1", "1", "2", "2", "2"} {
			f.put("ns-1/item-1", text)
		}
	}
	f.reopen(0)
	w := f.watch(1, "")
	defer w.Close()
	for _, ev := range w.events(f.revision(), 10) {
		if ev.Prev == nil {
			continue
		}
		require.Same(t, unsafe.StringData(ev.Object.Key), unsafe.StringData(ev.Prev.Key))
		require.Equal(t, textOf(ev.Object) == textOf(ev.Prev), store.SharesAttributes(ev.Object, ev.Prev), "revision %d", ev.Revision)
	}
}

// From every revision, a watch delivers what one delivered at the time, with the same
// objects before and after; in batches of any size, with and without a prefix.
func TestRestart_ResumesFromEveryRevision(t *testing.T) {
	f := newFixture(t)
	told, _ := f.story(1, 200)
	last := f.revision()
	f.reopen(time.Minute)
	for from := store.Revision(1); from <= last; from++ {
		w := f.watch(from, "")
		require.Equal(t, told[from-1:], append([]string{}, w.read(last, 1+int(from)%50)...), "from %d", from)
		w.Close()
	}
	all, some := f.watch(1, ""), f.watch(1, "ns-1")
	var want []string
	for _, text := range all.read(last, 100) {
		if _, rest, _ := strings.Cut(text, " "); strings.HasPrefix(rest, "ns-1/") {
			want = append(want, text)
		}
	}
	require.NotEmpty(t, want)
	require.Equal(t, want, some.read(last, 7))
}

// An exact list of every revision is what it was, whole and in pages.
func TestRestart_ListsEveryRevision(t *testing.T) {
	f := newFixture(t)
	_, states := f.story(2, 150)
	f.reopen(time.Minute)
	for rev, want := range states {
		require.Equal(t, want, f.list(backend.ListOptions{Revision: rev}), "at %d", rev)
		var paged []string
		opts := backend.ListOptions{Revision: rev, Limit: 3}
		for {
			l, err := f.List(f.ctx, opts)
			require.NoError(t, err)
			require.Equal(t, rev, l.Revision)
			for _, o := range l.Items {
				paged = append(paged, describe(o))
			}
			if l.Continue == "" {
				break
			}
			require.Equal(t, len(want)-len(paged), l.Remaining)
			opts = backend.ListOptions{Continue: l.Continue, Limit: 3}
		}
		require.Equal(t, want, append([]string{}, paged...), "at %d, in pages", rev)
	}
	under := f.list(backend.ListOptions{Revision: 100, Prefix: "ns-1"})
	for _, text := range under {
		require.Contains(t, text, "ns-1/")
	}
	f.clock.Advance(time.Hour) // the index of the pages is forgotten
}

// A watch from before the restart meets what is written while it catches up.
func TestRestart_SplicesThePastToThePresent(t *testing.T) {
	f := newFixture(t)
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 40, ChunkSize: 10})()
	told, _ := f.story(3, 100)
	f.reopen(0)
	late := f.watch(1, "")
	require.Equal(t, told[:30], late.read(31, 1))
	live, _ := f.story(4, 200)
	require.Equal(t, append(told[30:], live...), late.read(f.revision(), 9))
	last, _ := f.story(5, 100) // more than is in memory: it goes back to the file
	require.Equal(t, last, late.read(f.revision(), 9))
	f.put("x", "live")
	require.Len(t, late.read(f.revision(), 9), 1)
}

func TestRestart_KeepsWhatWasCompacted(t *testing.T) {
	f := newFixture(t)
	_, states := f.story(6, 100)
	last := f.revision()
	require.NoError(t, f.Compact(f.ctx, 60))
	f.file.Settle()
	for range 2 {
		require.Equal(t, store.Revision(60), f.compacted())
		_, err := f.Watch(f.ctx, backend.WatchOptions{From: 59, Notify: func() {}})
		var expired *store.ExpiredError
		require.ErrorAs(t, err, &expired)
		require.Equal(t, store.Revision(60), expired.Oldest)
		_, err = f.List(f.ctx, backend.ListOptions{Revision: 59})
		require.ErrorIs(t, err, store.ErrExpired)
		require.Equal(t, states[60], f.list(backend.ListOptions{Revision: 60}))
		require.Len(t, f.watch(60, "").read(last, 10), int(last-60))
		f.reopen(0)
	}
	require.NoError(t, f.Compact(f.ctx, last))
	f.file.Settle()
	f.reopen(0)
	require.Equal(t, last, f.revision())
	require.Equal(t, states[last], f.list(backend.ListOptions{}))
}

// Nothing is left but the revision, and that goes on.
func TestRestart_NeverUsesARevisionTwice(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	gone := f.remove("a")
	require.NoError(t, f.Compact(f.ctx, gone.Revision))
	f.file.Settle()
	f.reopen(0)
	require.Equal(t, gone.Revision+1, f.put("a", "2").Revision)
}

// What expires while the process is down is deleted when it comes back, in order,
// as events that watches from before see.
func TestRestart_DeletesWhatHasExpired(t *testing.T) {
	f := newFixture(t)
	for i, key := range []string{"late", "b", "a", "early"} {
		f.putFor([]time.Duration{3, 2, 2, 1}[i]*time.Minute, key, "x")
	}
	f.putFor(time.Hour, "stays", "x")
	f.put("for ever", "x")
	rev := f.revision()
	f.reopen(3 * time.Minute)
	require.Equal(t, rev+4, f.revision())
	var told []string
	for _, text := range f.watch(rev, "").read(rev+4, 100) {
		event, _, _ := strings.Cut(text, ":")
		told = append(told, event)
	}
	require.Equal(t, []string{"DELETED early@8", "DELETED a@9", "DELETED b@10", "DELETED late@11"}, told)
	f.clock.Advance(time.Hour)
	require.Len(t, f.list(backend.ListOptions{}), 1, "the rest of the hour counts from when it was written")
	f.reopen(time.Hour)
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

func TestRestart_DeletesAnyNumberThatHasExpired(t *testing.T) {
	f := newFixture(t)
	var wg sync.WaitGroup
	for i := range 2500 {
		wg.Go(func() {
			if _, err := f.Put(f.ctx, draft(fmt.Sprint("k", i), "x"), nil, backend.PutOptions{TTL: time.Minute}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.reopen(time.Hour)
	require.Empty(t, f.list(backend.ListOptions{}))
	require.Equal(t, store.Revision(5001), f.revision())
}

// The clock may go back: order and expiry stay as they are.
func TestRestart_LivesWithAClockThatGoesBack(t *testing.T) {
	f := newFixture(t)
	f.putFor(time.Hour, "a", "1")
	f.close()
	f.clock.Advance(-24 * time.Hour)
	f.open()
	o := f.put("b", "2")
	require.Equal(t, store.Revision(3), o.Revision)
	require.Equal(t, f.clock.Now(), o.Written, "it is the clock's word")
	require.Len(t, f.list(backend.ListOptions{}), 2)
	require.Len(t, f.watch(1, "").read(3, 10), 2)
	f.clock.Advance(26 * time.Hour)
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

// The time that the process was down does not age history: nothing is given up at the
// start, and later no more than the limits say.
func TestRestart_DoesNotAgeHistory(t *testing.T) {
	f := newFixture(t, func(f *fixture) {
		f.cfg.Retain = window.Limits{MinEvents: 400, MinAge: time.Minute}
	})
	f.flicker("a", 1000)
	f.reopen(30 * 24 * time.Hour)
	f.file.Settle()
	require.Zero(t, f.compacted())
	require.Len(t, f.watch(1, "").read(f.revision(), 300), 1000)
	f.clock.Advance(2 * time.Minute)
	f.file.Settle()
	require.Greater(t, f.compacted(), store.Revision(200))
	require.LessOrEqual(t, f.compacted(), store.Revision(601))
	require.Len(t, f.watch(601, "").read(f.revision(), 300), 400)
}

func TestRestart_TypesShareAFile(t *testing.T) {
	f := newFixture(t)
	others, err := bolt.New(f.file, "others", f.cfg)
	require.NoError(t, err)
	f.put("a", "item")
	for range 3 {
		_, err := others.Emit(f.ctx, draft("a", "other"))
		require.NoError(t, err)
	}
	_, err = bolt.New(f.file, "others", f.cfg)
	require.ErrorIs(t, err, bolt.ErrTypeInUse)
	require.NoError(t, others.Close())
	f.reopen(0)
	require.Equal(t, store.Revision(2), f.revision())
	others, err = bolt.New(f.file, "others", f.cfg)
	require.NoError(t, err)
	rev, err := others.Revision(f.ctx)
	require.NoError(t, err)
	require.Equal(t, store.Revision(4), rev)
	info, err := f.file.Info()
	require.NoError(t, err)
	require.Equal(t, map[string]bolt.TypeInfo{"items": {Revision: 2}, "others": {Revision: 4}}, info.Types)
}

// A new file begins far from where a deleted one was.
func TestNew_BeginsWhereNoOtherLifeWas(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.FirstRevision = 0 })
	require.Equal(t, store.Revision(f.clock.Now().UnixMicro()), f.revision())
	_, err := f.Watch(f.ctx, backend.WatchOptions{From: 501, Notify: func() {}})
	require.ErrorIs(t, err, store.ErrExpired)
	rev := f.put("a", "1").Revision
	f.reopen(time.Hour)
	require.Equal(t, rev, f.revision(), "and stays there")
}
