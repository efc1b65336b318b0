package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

func TestOpen_SaysWhatIsWrongWithOptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	for _, opts := range []bolt.Options{{CloseTimeout: -1}, {SnapshotTimeout: -1}, {LockTimeout: -1}, {MaxBytes: 1}, {ShrinkAt: 2}} {
		_, err := bolt.Open(path, opts)
		require.ErrorContains(t, err, "Options.")
	}
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	defer f.Close()
	good := newFixture(t).cfg
	for name, cfg := range map[string]bolt.Config{
		"":       good,
		"no":     {},
		"policy": {Schema: good.Schema, OnUndecodable: 7},
		"chunks": {Schema: good.Schema, Retain: window.Limits{ChunkSize: 1}},
		"first":  {Schema: good.Schema, FirstRevision: 1 << 63},
		"retain": {Schema: good.Schema, Retain: window.Limits{MinAge: -1}},
	} {
		_, err := bolt.New(f, name, cfg)
		var option *usercode.ConfigError
		require.ErrorAs(t, err, &option, name)
	}
	_, err = bolt.New(nil, "things", good)
	require.EqualError(t, err, "invalid configuration: f is nil; give what Open returns")
}

func TestOpen_IsToldThatTheFileIsOpen(t *testing.T) {
	f := newFixture(t)
	_, err := bolt.Open(f.path, bolt.Options{LockTimeout: time.Millisecond})
	require.ErrorIs(t, err, backend.ErrLocked)
	var locked *bolt.LockedError
	require.ErrorAs(t, err, &locked)
	require.True(t, locked.Here)
}

func TestReadOnly_ServesAllAndWritesNothing(t *testing.T) {
	f := newFixture(t)
	told, states := f.story(1, 60)
	f.putFor(time.Minute, "expires", "x")
	last := f.revision()
	f.close()
	f.opts.ReadOnly = true
	f.clock.Advance(time.Hour)
	f.open()
	require.Len(t, f.list(backend.ListOptions{}), len(states[last-1])+1, "nothing expires")
	require.Equal(t, told, f.watch(1, "").read(last-1, 10)[:60])
	require.Equal(t, states[30], f.list(backend.ListOptions{Revision: 30}))
	_, err := f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{})
	require.ErrorIs(t, err, backend.ErrReadOnly)
	require.ErrorContains(t, err, f.path)
	require.ErrorIs(t, f.Compact(f.ctx, last), backend.ErrReadOnly)
	_, err = bolt.New(f.file, "more", f.cfg)
	require.ErrorIs(t, err, backend.ErrReadOnly)
	f.clock.Advance(time.Hour)
}

// Compaction at a revision that was compacted does nothing, also to a file that cannot be written.
func TestCompact_OfAFileForReadingDoesNothingThatWasDone(t *testing.T) {
	f := newFixture(t)
	f.flicker("a", 10)
	require.NoError(t, f.Compact(f.ctx, 8))
	f.close()
	var reported []error
	f.opts.ReadOnly, f.opts.OnError = true, func(err error) { reported = append(reported, err) }
	f.open()
	require.NoError(t, f.Compact(f.ctx, 8))
	require.NoError(t, f.Compact(f.ctx, 5))
	f.file.Settle()
	require.Empty(t, reported)
}

func TestDump_TellsAllThatIsInAFile(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	f.putFor(time.Hour, "a", "2")
	f.emit("b", "3")
	f.remove("a")
	f.close()
	var lines []string
	report, err := bolt.Dump(f.path, func(r bolt.Record) error {
		lines = append(lines, fmt.Sprintf("%s %v %s@%d created %d prev %d %s", r.Type, r.Event, r.Key, r.Revision, r.Created, r.Prev, r.Value))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 4, report.Records)
	require.Equal(t, map[string]bolt.TypeInfo{"items": {Revision: 5}}, report.Types)
	require.Equal(t, []string{
		`items ADDED a@2 created 2 prev 0 {"Key":"a","Text":"1"}`,
		`items MODIFIED a@3 created 2 prev 2 {"Key":"a","Text":"2"}`,
		`items EMITTED b@4 created 4 prev 0 {"Key":"b","Text":"3"}`,
		`items DELETED a@5 created 2 prev 3 `,
	}, lines)
	enough := errors.New("enough")
	_, err = bolt.Dump(f.path, func(bolt.Record) error { return enough })
	require.ErrorIs(t, err, enough)
	_, err = bolt.Check(f.path + "x")
	require.ErrorIs(t, err, fs.ErrNotExist)
	f.open()
}

// unshrunk is a journal of a file that could not be shrunk.
type unshrunk struct {
	journal.Journal
	err error
}

func (j unshrunk) Usage() (journal.Usage, error) {
	u, err := j.Journal.Usage()
	u.Unshrunk = j.err
	return u, err
}

func TestOpen_TellsThatTheFileCouldNotBeShrunk(t *testing.T) {
	var reported []error
	f := newFixture(t, func(f *fixture) {
		f.opts.OnError = func(err error) { reported = append(reported, err) }
		f.wrap = func(j journal.Journal) journal.Journal { return unshrunk{j, syscall.ENOSPC} }
	})
	require.Equal(t, []error{syscall.ENOSPC}, reported)
	info, err := f.file.Info()
	require.NoError(t, err)
	require.Equal(t, syscall.ENOSPC, info.LastError)
	f.put("a", "1")
}

// Records that are whole, and do not fit together, are not taken for a state.
func TestNew_FindsABrokenChain(t *testing.T) {
	for what, r := range map[string]journal.Record{
		"does not continue": {Kind: journal.Put, Key: []byte("a"), Prev: 2, Created: 2},
		"did not exist":     {Kind: journal.Delete, Key: []byte("c"), Prev: 3, Created: 3},
		"another object's":  {Kind: journal.Put, Key: []byte("c"), Prev: 3, Created: 3}, // which a trim would delete
	} {
		f := newFixture(t)
		f.put("a", "1")
		f.put("a", "2")
		f.close()
		j, err := journal.Open(f.path, journal.Options{})
		require.NoError(t, err)
		require.NoError(t, j.Append(journal.Batch{Entries: []journal.Entry{{Log: "items", Revision: 4, Data: r.AppendTo(nil, 4)}}}))
		require.NoError(t, j.Close())
		_, err = f.tryOpen()
		var corrupt *bolt.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.Equal(t, uint64(4), corrupt.Revision)
		require.ErrorContains(t, err, what)
		report, err := bolt.Check(f.path)
		require.NoError(t, err)
		require.Len(t, report.Problems, 1)
		f.file, err = bolt.Open(f.path, f.opts)
		require.NoError(t, err)
	}
}

// History, and with it the file, stays within its bounds however much is written.
func TestRetain_BoundsHistoryAndFile(t *testing.T) {
	f := newFixture(t, func(f *fixture) {
		f.cfg.Retain = window.Limits{MinEvents: 300, MaxEvents: 2000}
	})
	f.put("stays", "x")
	text := string(bytes.Repeat([]byte{'x'}, 300))
	var most store.Revision
	for range 48 {
		f.emitMany(250, text)
		f.file.Settle()
		most = max(most, f.revision()-f.compacted())
	}
	f.file.Settle()
	require.Greater(t, most, store.Revision(2000))
	require.LessOrEqual(t, most, store.Revision(3100), "a quarter more, and what is written meanwhile")
	info, err := f.file.Info()
	require.NoError(t, err)
	require.Less(t, info.Size, int64(4<<20), "12,000 emissions of 300 bytes have 5 MB")
	report := f.check()
	require.LessOrEqual(t, report.Records, 3100)
	require.Len(t, f.list(backend.ListOptions{}), 1)
}

func (f *fixture) check() *bolt.Report {
	f.Helper()
	f.close()
	report, err := bolt.Check(f.path)
	require.NoError(f, err)
	require.Empty(f, report.Problems)
	f.open()
	return report
}

// A watch that is overtaken by compaction is told, in the file as in memory; it
// never has a gap.
func TestWatch_IsToldWhenHistoryIsGivenUp(t *testing.T) {
	f := newFixture(t)
	last := f.flicker("a", 1400).Revision
	f.reopen(0)
	late := f.watch(1, "")
	events := late.read(11, 10)
	require.Len(t, events, 10)
	require.NoError(t, f.Compact(f.ctx, 1200))
	f.file.Settle()
	err := late.wait()
	var expired *store.ExpiredError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, store.Revision(1200), expired.Oldest)
	require.Len(t, f.watch(1200, "").read(last, 100), int(last-1200))
	_, err = late.Next(1)
	require.ErrorIs(t, err, store.ErrExpired, "and it stays so")
}

// With nothing to do there is no timer but that of what may come of age.
func TestIdle_NeedsNoTimer(t *testing.T) {
	f := newFixture(t)
	f.flicker("a", 10)
	f.clock.Advance(time.Hour)
	f.clock.Advance(time.Hour)
	require.Zero(t, f.clock.Pending())
	f.putFor(time.Hour, "b", "x")
	require.Equal(t, 2, f.clock.Pending())
}

// Old history goes in steps, so that some stays which is old enough.
func TestIdle_NeedsFewTimersWhateverTheAgeIs(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MinAge: time.Minute, MaxEvents: 10})()
	f := newFixture(t, func(f *fixture) {
		f.opts.Clock = &clocktest.Counting{Virtual: f.clock}
		f.cfg.Retain = window.Limits{MinEvents: 10, MinAge: time.Millisecond}
	})
	timers := &f.opts.Clock.(*clocktest.Counting).Timers
	for _, n := range []int{100, 1000} {
		f.flicker("a", n)
		*timers = 0
		for range 5 {
			f.clock.Advance(time.Minute)
			f.file.Settle()
		}
		require.Less(t, *timers, 10)
		require.Zero(t, f.clock.Pending())
	}
	require.Greater(t, f.compacted(), f.revision()-10-256, "MinEvents stay, and at most a step of 256 more")
}

// History that is too young when the timer fires is discarded later, even if nothing more is written.
func TestIdle_DiscardsAllThatComesOfAge(t *testing.T) {
	defer bolt.SetHotLimits(window.Limits{MinAge: time.Minute, MaxEvents: 10})()
	f := newFixture(t, func(f *fixture) {
		f.cfg.Retain = window.Limits{MinEvents: 10, MinAge: time.Hour}
	})
	f.clock.Advance(30 * time.Minute)
	f.emitMany(900, "x")
	for range 18 {
		f.clock.Advance(10 * time.Minute)
		f.file.Settle()
	}
	require.Greater(t, f.compacted(), f.revision()-10-256, "MinEvents stay, and at most a step of 256 more")
	require.Zero(t, f.clock.Pending())
}

// History that is young goes all the same if it has too many bytes. It goes once a quarter of them is
// too much, in steps of a sixteenth.
func TestRetain_HoldsNoMoreBytesThanItMay(t *testing.T) {
	const size, most = 16 << 10, 512 << 10
	f := newFixture(t, func(f *fixture) { f.cfg.Retain = window.Limits{MinEvents: 10, MaxBytes: most} })
	begun, text := f.revision(), strings.Repeat("x", size)
	for range 100 {
		f.emit("a", text)
		f.file.Settle()
		held := int(f.revision()-max(f.compacted(), begun)) * size
		require.LessOrEqual(t, held, most+most/4+most/16+2*size)
	}
	require.Greater(t, f.compacted(), begun)
	require.Greater(t, int(f.revision()-f.compacted())*size, most/2, "what fits stays")
}

func TestSnapshot_HonoursTheContext(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.file.Snapshot(ctx, new(bytes.Buffer))
	require.ErrorIs(t, err, context.Canceled)
}
