package bolt_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// overtaken is a journal of which a reader, once it has got its view, waits until the
// test lets it go on.
type overtaken struct {
	journal.Journal
	viewed, goOn chan struct{}
}

func (o *overtaken) Read(ctx context.Context, log string, fn func(journal.View) error) error {
	return o.Journal.Read(ctx, log, func(v journal.View) error {
		if o.viewed != nil {
			o.viewed <- struct{}{}
			<-o.goOn
		}
		return fn(v)
	})
}

// Writes that are committed after a watch has got its view of the file are not in that
// view: the watch has them yet to read.
func TestWatch_ReadsOnFromTheFileBehindWritesThatOvertakeIt(t *testing.T) {
	over := &overtaken{}
	f := newFixture(t, func(f *fixture) {
		f.wrap = func(j journal.Journal) journal.Journal {
			over.Journal = j
			return over
		}
	})
	for i := range 10 {
		f.put(fmt.Sprint("before-", i), "1")
	}
	from := f.revision()
	f.put("a", "1")
	f.reopen(0)
	over.viewed, over.goOn = make(chan struct{}), make(chan struct{})
	w := f.watch(from, "")
	defer w.Close()
	batch, err := w.Next(100) // begins to read
	require.NoError(t, err)
	require.Empty(t, batch.Events)
	<-over.viewed
	for i := range 5 {
		f.put(fmt.Sprint("meanwhile-", i), "1")
	}
	close(over.goOn)
	over.viewed = nil
	require.Len(t, w.read(from+6, 100), 6)
}

// History is discarded on the disk a moment before readers know: its records may be deleted by then.
// A watch that reads the file meanwhile ends, and does not skip what is missing.
func TestWatch_BehindMemorySkipsNothingThatIsBeingDiscarded(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 4, ChunkSize: 2})()
	f, disk := newFaulty(t)
	others, err := bolt.New(f.file, "others", f.cfg)
	require.NoError(t, err)
	from, last := f.revision(), f.flicker("a", 40).Revision
	notified, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	first, err := others.Watch(f.ctx, backend.WatchOptions{Notify: func() { close(notified); <-goOn }})
	require.NoError(t, err)
	_, err = first.Next(1)
	require.NoError(t, err)
	w := f.watch(from, "")
	defer w.Close()

	// The other type's write and the compaction are of one group, of which the write's watch is
	// notified first.
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer release()
	wg.Go(func() { _, _ = f.Put(f.ctx, draft("hanging", "x"), nil, backend.PutOptions{}) })
	<-entered
	wg.Go(func() { _, _ = others.Put(f.ctx, draft("a", "x"), nil, backend.PutOptions{}) })
	require.Eventually(t, func() bool { return f.file.Queued() == 1 }, time.Minute, 50*time.Microsecond)
	compacted := make(chan error, 1)
	wg.Go(func() { compacted <- f.Compact(f.ctx, last) })
	require.Eventually(t, func() bool { return f.file.Queued() == 2 }, time.Minute, 50*time.Microsecond)
	close(wait)
	<-notified
	require.Zero(t, f.compacted(), "readers do not know yet")
	for more := true; more; {
		trimmed, err := disk.Trim("items", journal.Budget{})
		require.NoError(t, err)
		more = trimmed.More
	}

	for err == nil {
		var batch backend.Batch
		batch, err = w.Next(100)
		require.Len(t, batch.Events, int(batch.Through-batch.After), "of (%d, %d]", batch.After, batch.Through)
		if err == nil && len(batch.Events) == 0 {
			<-w.notified
		}
	}
	require.ErrorIs(t, err, store.ErrExpired)
	release()
	require.NoError(t, <-compacted)
}

// A slow watch that reads the file keeps a bounded part of what it has read, however large
// the values are.
func TestWatch_BehindMemoryHoldsLittleOfLargeValues(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 4, ChunkSize: 2})()
	defer bolt.SetColdRun(8)()
	const events, size = 160, 8 << 10
	defer bolt.SetMaxRecentBytes(16 * size)()
	f := newFixture(t)
	from := f.revision()
	text := strings.Repeat("x", size)
	last := from
	for range events {
		last = f.put("a", text).Revision
	}
	f.reopen(0)
	f.clock.Advance(time.Hour) // what New has read is forgotten: the history is in the file alone
	w := f.watch(from, "")
	defer w.Close()
	var objects []weak.Pointer[store.Object]
	for w.through < last-20 { // it still reads the file
		for _, ev := range w.events(w.through+1, 1) {
			objects = append(objects, weak.Make(ev.Object))
		}
	}
	runtime.GC()
	live := 0
	for _, o := range objects {
		if o.Value() != nil {
			live++
		}
	}
	require.Greater(t, len(objects), events/2)
	require.Less(t, live, 16+2*8, "of %d", len(objects))
}

// A codec that ends its goroutine ends the watch that reads ahead in it.
func TestWatch_CodecThatEndsItsGoroutineEndsTheWatch(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 10, ChunkSize: 5})()
	f := newFixture(t)
	from := f.revision()
	f.put("a", "text 0")
	f.flicker("a", 50)
	f.close()
	f.cfg.Codec = fatal{"text 0"}
	f.open()
	w := f.watch(from, "")
	defer w.Close()
	require.ErrorIs(t, w.wait(), usercode.ErrGoexit)
}

// A run of records whose own values are small, or that have none, ends early if the states
// before them are large.
func TestWatch_BehindMemoryReadsFewLargeStatesAtOnce(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 4, ChunkSize: 2})()
	const objects, size = 32, 8 << 10
	defer bolt.SetColdBytes(4 * size)()
	f := newFixture(t)
	for i := range objects {
		f.put(fmt.Sprint("k", i), strings.Repeat("x", size))
	}
	from := f.revision()
	for i := range objects {
		if i%2 == 0 {
			f.remove(fmt.Sprint("k", i))
		} else {
			f.put(fmt.Sprint("k", i), "small")
		}
	}
	f.reopen(0)
	f.clock.Advance(time.Hour) // what New has read is forgotten: the history is in the file alone
	w := f.watch(from, "")
	defer w.Close()
	require.Len(t, w.events(from+1, objects), 4, "as many as have the bytes of a run")
	require.Len(t, w.events(from+objects, objects), objects-4)
}

// A watch that takes one event at a time has no more than two runs read ahead, even if these
// are of few large values.
func TestWatch_BehindMemoryReadsAheadLittleOfLargeValues(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 4, ChunkSize: 2})()
	const events, size, run = 100, 8 << 10, 4
	defer bolt.SetColdBytes(run * size)()
	var decoded atomic.Int64
	f := newFixture(t, func(f *fixture) { f.cfg.Codec = counting{decoded: &decoded} })
	from := f.revision()
	for range events {
		f.put("a", strings.Repeat("x", size))
	}
	last := f.revision()
	f.reopen(0)
	f.clock.Advance(time.Hour)
	decoded.Store(0)
	w := f.watch(from, "")
	defer w.Close()
	for taken := 0; w.through < last-10; { // it still reads the file
		taken += len(w.events(w.through+1, 1))
		require.Eventually(t, func() bool { return bolt.ReadAhead(w.Watcher) }, time.Minute, time.Millisecond)
		require.LessOrEqual(t, int(decoded.Load())-taken, 2*run)
	}
	require.Greater(t, int(decoded.Load()), events/2)
}

// A panic in the schema ends the watch that reads ahead, and is not taken for damage of the
// file.
func TestWatch_SchemaThatPanicsEndsTheWatch(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 4, ChunkSize: 2})()
	defer bolt.SetColdRun(8)()
	var failing atomic.Bool
	f := newFixture(t, func(f *fixture) {
		newItem := f.cfg.Schema.New
		f.cfg.Schema.New = func() *store.Object {
			if failing.Load() {
				panic("no object")
			}
			return newItem()
		}
	})
	put := f.put("b", "1").Revision
	f.remove("b")
	last := f.flicker("a", 50).Revision
	f.reopen(0)
	f.clock.Advance(time.Hour)
	for _, opts := range []backend.WatchOptions{{From: 1}, {From: put}, {From: put, NoPrev: true}} {
		failing.Store(true)
		w := f.watchBy(opts)
		err := w.wait()
		require.ErrorIs(t, err, usercode.ErrPanic)
		require.NotErrorIs(t, err, backend.ErrCorrupt)
		w.Close()
		failing.Store(false)
	}
	require.Len(t, f.watch(1, "").read(last, 10), 52, "the file is as good as before")
	f.put("c", "1")
}

// A batch with the state has each event with the state before it, also for a watch that knows
// that, and that has read events ahead without.
func TestWatch_StateComesWithWholeEvents(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 4, ChunkSize: 2})()
	const run, events = 8, 14
	defer bolt.SetColdRun(run)()
	f := newFixture(t)
	f.put("a", "first")
	from := f.revision()
	last := f.flicker("a", events).Revision
	f.reopen(0)
	f.clock.Advance(time.Hour)
	w := f.watchBy(backend.WatchOptions{From: from, NoPrev: true, State: true})
	defer w.Close()
	early := w.events(from+run/2, run/2)
	require.Nil(t, early[0].Prev, "it is not read without need")
	require.Eventually(t, func() bool { return bolt.ReadAhead(w.Watcher) }, time.Minute, time.Millisecond)
	for w.through < last {
		batch, err := w.Next(events)
		require.NoError(t, err)
		w.through = batch.Through
		require.Equal(t, batch.Through == last, batch.State != nil)
		for _, ev := range batch.Events {
			require.Equal(t, batch.State != nil, ev.Prev != nil, "%v", ev)
		}
	}
	last = f.flicker("a", 3*run).Revision // which is more than memory has
	for _, ev := range w.events(last, events) {
		require.NotNil(t, ev.Prev, "%v comes behind the state", ev)
	}
}

// A value in the history that cannot be decoded ends a watch behind the events before it, and is
// not left out.
func TestWatch_EndsBeforeAValueThatCannotBeDecoded(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.put("a", "bad")
	f.put("a", "3")
	f.put("b", "bad")
	f.remove("b")
	f.close()
	f.cfg.Codec = failing{"bad"}
	f.open()
	w := f.watch(1, "")
	defer w.Close()
	require.Len(t, w.read(2, 10), 1)
	require.ErrorIs(t, w.wait(), backend.ErrUndecodable)
	require.Len(t, f.watch(4, "").read(4, 10), 0)
	require.ErrorIs(t, f.watch(5, "").wait(), backend.ErrUndecodable, "a deletion has the last value")
}

// What was compacted is not held in memory either.
func TestCompact_ReleasesWhatIsInMemory(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 100, ChunkSize: 2})()
	f := newFixture(t)
	first := weak.Make(f.put("a", "first"))
	last := f.flicker("a", 10)
	runtime.GC()
	require.NotNil(t, first.Value(), "a watch can have it")
	require.NoError(t, f.Compact(f.ctx, last.Revision))
	f.file.Settle()
	runtime.GC()
	require.Nil(t, first.Value())
}

// What has come of age is not held in memory, though the state of that time was read.
func TestIdle_ReleasesWhatIsOld(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 100, ChunkSize: 2})()
	f := newFixture(t)
	first := weak.Make(f.put("a", "first"))
	f.flicker("a", 10)
	require.Len(t, f.list(backend.ListOptions{}), 1)
	f.clock.Advance(time.Hour)
	runtime.GC()
	require.Nil(t, first.Value())
}

// Memory keeps no more bytes of history than its limit, whatever the changes are.
func TestHistory_ReleasesWhatIsTooManyBytes(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MinAge: time.Hour, MaxEvents: 1000, MaxBytes: 100_000, ChunkSize: 2})()
	text := strings.Repeat("x", 10_000)
	expiring := func(f *fixture) {
		for i := range 40 {
			f.putFor(time.Minute, fmt.Sprint(i), text)
		}
	}
	for name, c := range map[string]struct{ before, write func(*fixture) }{
		"updates": {write: func(f *fixture) {
			for range 40 {
				f.put("a", text)
			}
		}},
		"emissions": {write: func(f *fixture) { f.emitMany(40, text) }},
		"deletions": {before: expiring, write: func(f *fixture) {
			for i := range 40 {
				f.remove(fmt.Sprint(i))
			}
		}},
		"expiries":                 {before: expiring, write: func(f *fixture) { f.clock.Advance(time.Minute) }},
		"expiries after a restart": {before: func(f *fixture) { expiring(f); f.reopen(0) }, write: func(f *fixture) { f.clock.Advance(time.Minute) }},
	} {
		f := newFixture(t)
		if c.before != nil {
			c.before(f)
		}
		first := weak.Make(f.put("first", "1"))
		f.put("first", "2")
		runtime.GC()
		require.NotNil(t, first.Value(), name)
		c.write(f)
		runtime.GC()
		require.Nil(t, first.Value(), name)
	}
}
