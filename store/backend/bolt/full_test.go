package bolt_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
	"github.com/watchmill/watchmill/store/window"
)

// leastMaxBytes is the least that Options.MaxBytes may be on this system.
var leastMaxBytes = max(512<<10, 128*int64(os.Getpagesize()))

// scaled returns a number of bytes that is the same part of a page of this system as n is of one of 4 KiB.
func scaled(n int) int { return n * os.Getpagesize() / (4 << 10) }

// When there is no space, history that need not be kept makes some.
func TestWrite_GivesUpHistoryForSpace(t *testing.T) {
	f := newFixture(t, func(f *fixture) {
		f.opts.MaxBytes = 2 * leastMaxBytes
		f.cfg.Retain = window.Limits{MinEvents: 20}
	})
	text := strings.Repeat("x", scaled(5000))
	for range 600 { // three times what fits
		f.put("a", text)
	}
	f.file.Settle()
	require.Positive(t, f.compacted())
	require.LessOrEqual(t, f.compacted(), f.revision()-20)
	require.NotEmpty(t, f.watch(f.revision()-20, "").read(f.revision(), 100))
	info, err := f.file.Info()
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size, f.opts.MaxBytes)
	f.reopen(0)

	for i := 0; err == nil; i++ { // until the state itself does not fit
		require.Less(t, i, 1000)
		_, err = f.Put(f.ctx, draft(fmt.Sprint("k", i), text), nil, backend.PutOptions{})
	}
	require.ErrorIs(t, err, backend.ErrFull)
	before := f.list(backend.ListOptions{})
	f.file.Settle()
	f.reopen(0)
	require.Equal(t, before, f.list(backend.ListOptions{}))
}

// fillUp writes new objects until there is no space, and returns how many.
func (f *fixture) fillUp(text string) (objects int) {
	f.Helper()
	for {
		_, err := f.Put(f.ctx, draft(fmt.Sprint("full ", objects), text), nil, backend.PutOptions{})
		if err != nil {
			require.ErrorIs(f, err, backend.ErrFull)
			return objects
		}
		objects++
		require.Less(f, objects, 1000)
	}
}

// History can be deleted though the objects that it has changed are spread over the whole file, so that deleting many
// records at once would change more pages than there are: it is deleted in smaller steps, in space that no write takes.
func TestWrite_GivesUpHistoryThatIsSpreadOverTheFile(t *testing.T) {
	const objects = 180 // four fifths of what fits
	f := newFixture(t, func(f *fixture) {
		f.opts.MaxBytes = leastMaxBytes
		f.cfg.Retain = window.Limits{MinEvents: 10}
	})
	text, random := strings.Repeat("x", scaled(1000)), rand.New(rand.NewPCG(1, 2))
	for i := range objects {
		f.put(fmt.Sprint("k", i), text)
	}
	for range 300 {
		f.put(fmt.Sprint("k", random.IntN(objects)), text)
	}
	f.file.Settle()
	b, err := f.Bounds()
	require.NoError(t, err)
	require.Equal(t, b.Floor, b.Trimmed)
	require.Len(t, f.list(backend.ListOptions{}), objects)
}

// Objects can be removed from a file that is full, though all of its history is to be kept, and once some of that may
// go, there is space again.
func TestRemove_SucceedsInAFullFile(t *testing.T) {
	for _, size := range []int{1000, 5000, 20_000, 40_000, 60_000} {
		f := newFixture(t, func(f *fixture) { f.opts.MaxBytes = leastMaxBytes })
		text := strings.Repeat("x", scaled(size))
		objects := f.fillUp(text)
		for i := range min(objects, 100) {
			f.remove(fmt.Sprint("full ", i))
		}
		require.NoError(t, f.Compact(f.ctx, f.revision()))
		f.file.Settle()
		b, err := f.Bounds()
		require.NoError(t, err)
		require.Equal(t, b.Floor, b.Trimmed)
		f.put("new", text)
	}
}

// tooFullToDelete are the faults of a disk that has no space even for the deletion of a single record of history, after
// each try with more: as many as a transaction may delete, then 256, and half of that each time.
func tooFullToDelete(path string) []journaltest.Fault {
	return slices.Repeat([]journaltest.Fault{{Err: &bolt.FullError{Path: path, Cause: syscall.ENOSPC}}}, 2+8)
}

// A disk that was full for a moment keeps no history that was discarded.
func TestCompact_DeletesHistoryOnceThereIsSpace(t *testing.T) {
	f, disk := newFaulty(t)
	last := f.flicker("a", 80).Revision
	disk.Add(journaltest.Fault{}) // of the floor
	disk.Add(tooFullToDelete(f.path)...)
	require.NoError(t, f.Compact(f.ctx, last))
	f.file.Settle()
	b, err := f.Bounds()
	require.NoError(t, err)
	require.Less(t, b.Trimmed, b.Floor)
	f.clock.Advance(time.Minute)
	f.file.Settle()
	b, err = f.Bounds()
	require.NoError(t, err)
	require.Equal(t, b.Floor, b.Trimmed)
}

// All writes wait while history is deleted for the space of one: it deletes little, and upkeep the
// rest.
func TestWrite_WaitsForFewDeletionsOfHistory(t *testing.T) {
	t.Cleanup(bolt.SetFullTrims(8, 2)) // once the file is closed
	f := newFixture(t, func(f *fixture) {
		f.opts.MaxBytes = 2 * leastMaxBytes
		f.cfg.Retain = window.Limits{MinEvents: 20}
	})
	f.file.StopUpkeep()
	text := strings.Repeat("x", scaled(5000))
	for f.compacted() == 0 {
		require.Less(t, f.revision(), store.Revision(1000))
		f.put("a", text)
	}
	b, err := f.Bounds()
	require.NoError(t, err)
	require.Less(t, b.Trimmed, b.Floor-16)
	for range 600 { // three times what fits
		f.put("a", text)
	}
	f.reopen(0)
	f.file.Settle()
	b, err = f.Bounds()
	require.NoError(t, err)
	require.Equal(t, b.Floor, b.Trimmed)
}

// A write that needs space deletes only some of the discarded history. Upkeep deletes the rest.
func TestWrite_LeavesHistoryToUpkeep(t *testing.T) {
	t.Cleanup(bolt.SetFullTrims(8, 2)) // once the file is closed
	f, disk := newFaulty(t, func(f *fixture) { f.cfg.Retain = window.Limits{MinEvents: 20} })
	f.flicker("a", 80)
	disk.Add(journaltest.Fault{Err: &bolt.FullError{Path: f.path, Cause: syscall.ENOSPC}})
	f.put("a", "x")
	f.file.Settle()
	b, err := f.Bounds()
	require.NoError(t, err)
	require.Positive(t, b.Floor)
	require.Equal(t, b.Floor, b.Trimmed)
}

// If the disk is too full to delete more, a write is tried again in the space that was freed until then.
func TestWrite_TakesTheSpaceOfTheFirstDeletion(t *testing.T) {
	t.Cleanup(bolt.SetFullTrims(8, 5)) // once the file is closed
	f, disk := newFaulty(t, func(f *fixture) { f.cfg.Retain = window.Limits{MinEvents: 20} })
	last := f.flicker("a", 80)
	full := journaltest.Fault{Err: &bolt.FullError{Path: f.path, Cause: syscall.ENOSPC}}
	disk.Add(full, journaltest.Fault{}, journaltest.Fault{}, full) // the write, the floor, and two deletions
	_, err := f.Put(f.ctx, draft("a", "x"), last, backend.PutOptions{})
	require.NoError(t, err)
}

// If one type has no history to spare, that of another makes space.
func TestWrite_TakesTheSpaceOfAnyType(t *testing.T) {
	f, disk := newFaulty(t, func(f *fixture) { f.cfg.Retain = window.Limits{MinEvents: 20} })
	f.flicker("a", 80)
	for _, name := range []string{"before", "other"} { // by their names, before items and after
		more, err := bolt.New(f.file, name, f.cfg)
		require.NoError(t, err)
		disk.Add(journaltest.Fault{Err: &bolt.FullError{Path: f.path, Cause: syscall.ENOSPC}})
		_, err = more.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{})
		require.NoError(t, err, name)
		f.flicker("a", 80)
	}
	require.Positive(t, f.compacted())
}

// Upkeep may be done with a type, and still busy with another, when the first one is compacted.
func TestCompact_FreesSpaceBesideUpkeepOfAnotherType(t *testing.T) {
	f, disk := newFaulty(t)
	others, err := bolt.New(f.file, "others", f.cfg)
	require.NoError(t, err)
	o, err := others.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{})
	require.NoError(t, err)
	last := f.flicker("a", 10).Revision
	entered, wait := make(chan struct{}), make(chan struct{})
	floor, look := journaltest.Fault{}, journaltest.Fault{} // of others, and at items
	disk.Add(floor, look, journaltest.Fault{Entered: entered, Wait: wait})
	require.NoError(t, others.Compact(f.ctx, o.Revision))
	<-entered
	require.NoError(t, f.Compact(f.ctx, last))
	close(wait)
	f.file.Settle()
	b, err := f.Bounds()
	require.NoError(t, err)
	require.Equal(t, uint64(last), b.Trimmed)
}

// Upkeep deletes in small steps, too, if there is no space for larger ones.
func TestUpkeep_DeletesLittleAtOnceIfTheDiskIsFull(t *testing.T) {
	var reported []error
	f, disk := newFaulty(t, func(f *fixture) { f.opts.OnError = func(err error) { reported = append(reported, err) } })
	last := f.flicker("a", 80).Revision
	disk.Add(journaltest.Fault{}, journaltest.Fault{Err: &bolt.FullError{Path: f.path, Cause: syscall.ENOSPC}})
	require.NoError(t, f.Compact(f.ctx, last))
	f.file.Settle()
	b, err := f.Bounds()
	require.NoError(t, err)
	require.Equal(t, uint64(last), b.Trimmed)
	require.Empty(t, reported)
}

// An object can be removed from a full file beside writes that find no space.
func TestRemove_SucceedsBesideAWriteThatFindsNoSpace(t *testing.T) {
	f, disk := newFaulty(t, func(f *fixture) { f.opts.MaxBytes = leastMaxBytes })
	f.fillUp(strings.Repeat("x", scaled(3000)))
	text := strings.Repeat("x", scaled(60_000)) // which does not fit, whichever pages are used
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	put := func(key string) error {
		_, err := f.Put(f.ctx, draft(key, text), nil, backend.PutOptions{})
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, 3)
	wg.Go(func() { errs[0] = put("hanging") })
	<-entered
	wg.Go(func() { errs[1] = put("another") })
	require.Eventually(t, func() bool { return f.file.Queued() == 1 }, time.Minute, 50*time.Microsecond)
	o, err := f.Get(f.ctx, "full 0")
	require.NoError(t, err)
	wg.Go(func() { _, errs[2] = f.Remove(f.ctx, o) })
	require.Eventually(t, func() bool { return f.file.Queued() == 2 }, time.Minute, 50*time.Microsecond)
	close(wait)
	wg.Wait()
	require.ErrorIs(t, errs[0], backend.ErrFull)
	require.ErrorIs(t, errs[1], backend.ErrFull)
	require.NoError(t, errs[2])
	_, err = f.Get(f.ctx, "full 0")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// So do objects expire there, each once.
func TestExpiry_GoesOnBesideAWriteThatFindsNoSpace(t *testing.T) {
	f, disk := newFaulty(t, func(f *fixture) { f.opts.MaxBytes = leastMaxBytes })
	for i := range 3 {
		f.putFor(time.Minute, fmt.Sprint("short ", i), "x")
	}
	f.fillUp(strings.Repeat("x", scaled(3000)))
	text := strings.Repeat("x", scaled(60_000)) // which does not fit, whichever pages are used
	last := f.revision()
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	var wg sync.WaitGroup
	errs := make([]error, 2)
	put := func(i int) {
		_, errs[i] = f.Put(f.ctx, draft(fmt.Sprint("more ", i), text), nil, backend.PutOptions{})
	}
	wg.Go(func() { put(0) })
	<-entered
	wg.Go(func() { put(1) })
	require.Eventually(t, func() bool { return f.file.Queued() == 1 }, time.Minute, 50*time.Microsecond)
	wg.Go(func() { f.clock.Advance(time.Minute) })
	require.Eventually(t, func() bool { return f.file.Queued() == 2 }, time.Minute, 50*time.Microsecond)
	close(wait)
	wg.Wait()
	require.ErrorIs(t, errs[0], backend.ErrFull)
	require.ErrorIs(t, errs[1], backend.ErrFull)
	require.Equal(t, last+3, f.revision())
	events := f.watch(last, "").events(last+3, 10)
	require.Len(t, events, 3)
	for i, ev := range events {
		require.Equal(t, store.Deleted, ev.Type)
		require.Equal(t, fmt.Sprint("short ", i), ev.Key())
		require.Equal(t, last+store.Revision(i)+1, ev.Revision)
	}
}

// A compaction makes space, so that it must not fail for want of it, beside a write that does.
func TestCompact_SucceedsBesideAWriteThatFindsNoSpace(t *testing.T) {
	f, disk := newFaulty(t, func(f *fixture) { f.opts.MaxBytes = leastMaxBytes })
	put := func(key string) error {
		_, err := f.Put(f.ctx, draft(key, strings.Repeat("x", scaled(3000))), nil, backend.PutOptions{})
		return err
	}
	var err error
	for i := 0; err == nil; i++ {
		require.Less(t, i, 1000)
		err = put(fmt.Sprint("k", i))
	}
	require.ErrorIs(t, err, backend.ErrFull)
	last := f.revision()
	entered, wait := make(chan struct{}), make(chan struct{})
	disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
	var wg sync.WaitGroup
	errs := make([]error, 3)
	wg.Go(func() { errs[0] = put("hanging") })
	<-entered
	wg.Go(func() { errs[1] = put("another") })
	require.Eventually(t, func() bool { return f.file.Queued() == 1 }, time.Minute, 50*time.Microsecond)
	wg.Go(func() { errs[2] = f.Compact(f.ctx, last) })
	require.Eventually(t, func() bool { return f.file.Queued() == 2 }, time.Minute, 50*time.Microsecond)
	close(wait)
	wg.Wait()
	require.ErrorIs(t, errs[0], backend.ErrFull)
	require.ErrorIs(t, errs[1], backend.ErrFull)
	require.NoError(t, errs[2])
	require.Equal(t, last, f.compacted())
	f.reopen(0)
	require.Equal(t, last, f.compacted())
}

// Bytes alone bound the history, so that the file has space for writes; age does not.
func TestRetain_BytesAloneBoundHistory(t *testing.T) {
	f := newFixture(t, func(f *fixture) {
		f.opts.MaxBytes = 2 * leastMaxBytes
		f.cfg.Retain = window.Limits{MaxBytes: int64(scaled(256 << 10))}
	})
	text := strings.Repeat("x", scaled(5000))
	for range 600 {
		f.put("a", text)
	}
	f.clock.Advance(24 * time.Hour)
	f.file.Settle()
	require.Less(t, f.Marks(), 100, "marks of discarded history are dropped")
	kept := int(f.revision() - f.compacted())
	require.Greater(t, kept, scaled(128<<10)/len(text))
	require.LessOrEqual(t, kept, scaled(256<<10)/len(text))
	f.remove("a")
}

// MaxEvents needs no other limit.
func TestRetain_EventsAloneBoundHistory(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.Retain = window.Limits{MaxEvents: 500} })
	for range 8 {
		f.emitMany(250, "x")
		f.file.Settle()
	}
	kept := f.revision() - f.compacted()
	require.GreaterOrEqual(t, kept, store.Revision(500))
	require.LessOrEqual(t, kept, store.Revision(1100), "a quarter more, at least 256, and what is written meanwhile")
}

// MinEvents stay, even if they have more than MaxBytes.
func TestRetain_KeepsMinEventsBeyondMaxBytes(t *testing.T) {
	f := newFixture(t, func(f *fixture) {
		f.cfg.Retain = window.Limits{MinEvents: 300, MaxBytes: 64 << 10}
	})
	text := strings.Repeat("x", 1000)
	for range 8 {
		f.emitMany(100, text)
		f.file.Settle()
	}
	f.clock.Advance(24 * time.Hour)
	f.file.Settle()
	kept := f.revision() - f.compacted()
	require.GreaterOrEqual(t, kept, store.Revision(300))
	require.Less(t, kept, store.Revision(400))
}
