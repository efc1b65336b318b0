package bolt_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/codec"
	"github.com/watchmill/watchmill/store/window"
)

// gate is a codec whose first Decode waits.
type gate struct {
	codec.JSON
	once          *sync.Once
	entered, open chan struct{}
}

func newGate() gate {
	return gate{once: &sync.Once{}, entered: make(chan struct{}), open: make(chan struct{})}
}

func (g gate) Decode(tag uint8, data []byte, into any) error {
	g.once.Do(func() { close(g.entered); <-g.open })
	return g.JSON.Decode(tag, data, into)
}

// duringNew closes the backend, runs fn while New of a backend with cfg reads the objects
// again, and returns that backend and New's error.
func (f *fixture) duringNew(cfg bolt.Config, fn func()) (*bolt.Backend, error) {
	f.Helper()
	require.NoError(f, f.Close())
	g := newGate()
	cfg.Codec = g
	var b *bolt.Backend
	done := make(chan error, 1)
	go func() {
		var err error
		b, err = bolt.New(f.file, "items", cfg)
		done <- err
	}()
	<-g.entered
	fn()
	close(g.open)
	return b, <-done
}

func TestNew_FailsIfTheFileIsClosedMeanwhile(t *testing.T) {
	f := newFixture(t)
	f.put("a", "1")
	other, err := bolt.New(f.file, "others", f.cfg) // closed after items
	require.NoError(t, err)
	closed := make(chan error, 1)
	_, err = f.duringNew(f.cfg, func() {
		go func() { closed <- f.file.Close() }()
		require.Eventually(t, func() bool { _, err := other.Revision(f.ctx); return err != nil }, time.Minute, time.Millisecond)
	})
	require.ErrorIs(t, err, store.ErrClosed)
	require.NoError(t, <-closed)
}

// Space that is freed while a codec decodes, be it the base or the history, is used meanwhile.
func TestNew_KeepsNoSpaceFromOthersWhileItDecodes(t *testing.T) {
	for _, compacted := range []bool{true, false} {
		f := newFixture(t, func(f *fixture) {
			f.opts.MaxBytes = leastMaxBytes
			f.cfg.Retain = window.Limits{MinEvents: 1}
		})
		a := f.put("a", "1")
		if compacted {
			require.NoError(t, f.Compact(f.ctx, a.Revision))
		}
		other, err := bolt.New(f.file, "others", f.cfg)
		require.NoError(t, err)
		var failed error
		b, err := f.duringNew(f.cfg, func() {
			var last *store.Object
			for i := 0; i < 150 && failed == nil; i++ { // more than fits
				last, failed = other.Put(f.ctx, draft("o", strings.Repeat("x", scaled(5000))), last, backend.PutOptions{})
			}
		})
		require.NoError(t, err)
		require.NoError(t, failed)
		f.Backend = b
		require.Len(t, f.list(backend.ListOptions{}), 1)
	}
}

// unsynced is a journal that fails for good when a write is synced, which is in its pages then. Its bounds stay those
// before.
type unsynced struct {
	journal.Journal
	failing bool // the next write fails
	failed  *journal.FailedError
	bounds  journal.Bounds // since then
}

func (j *unsynced) write(name string, write func() error) (err error) {
	switch {
	case j.failed != nil:
		return j.failed
	case !j.failing:
		return write()
	}
	if j.bounds, err = j.Journal.Bounds(name); err == nil {
		err = write()
	}
	j.failed = &journal.FailedError{Cause: syscall.EIO}
	return &journal.FailedError{Uncertain: true, Cause: errors.Join(syscall.EIO, err)}
}

func (j *unsynced) Append(b journal.Batch) error {
	return j.write("items", func() error { return j.Journal.Append(b) })
}

func (j *unsynced) Trim(name string, b journal.Budget) (t journal.Trimmed, err error) {
	err = j.write(name, func() error {
		t, err = j.Journal.Trim(name, b)
		return err
	})
	return t, err
}

func (j *unsynced) Bounds(name string) (journal.Bounds, error) {
	if j.failed != nil {
		return j.bounds, nil
	}
	return j.Journal.Bounds(name)
}

func (j *unsynced) Declare(name string, _ uint64) (journal.Bounds, error) {
	if j.failed != nil {
		return j.bounds, nil
	}
	return j.Journal.Declare(name, 1)
}

// A write that failed when it was synced may not be on the disk. The next New does not show it, and takes nothing that it
// has deleted for lost.
func TestNew_LeavesOutWhatFailedToBeSynced(t *testing.T) {
	for name, write := range map[string]func(f *fixture, disk journal.Journal) error{
		"write": func(f *fixture, _ journal.Journal) error {
			_, err := f.Put(f.ctx, draft("b", "1"), nil, backend.PutOptions{})
			return err
		},
		"deletion of history": func(_ *fixture, disk journal.Journal) error {
			_, err := disk.Trim("items", journal.Budget{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &unsynced{}
			f := newFixture(t, func(f *fixture) {
				f.wrap = func(j journal.Journal) journal.Journal { disk.Journal = j; return disk }
			})
			f.put("lasting", "1")
			last := f.flicker("a", 10)
			f.file.StopUpkeep()
			require.NoError(t, f.Compact(f.ctx, last.Revision-3))
			before := f.list(backend.ListOptions{})
			disk.failing = true
			require.ErrorIs(t, write(f, disk), backend.ErrFailed)
			require.NoError(t, f.Backend.Close())
			var err error
			f.Backend, err = bolt.New(f.file, "items", f.cfg)
			require.NoError(t, err)
			require.Equal(t, before, f.list(backend.ListOptions{}))
			require.Equal(t, last.Revision, f.revision())
			require.Len(t, f.watch(last.Revision-3, "").read(last.Revision, 10), 3)
		})
	}
}

// Objects whose records are far apart are a base, and no history.
func TestNew_CountsHistoryAlone(t *testing.T) {
	f := newFixture(t, func(f *fixture) {
		f.cfg.Retain = window.Limits{MaxBytes: 1, MinEvents: 1} // a step for each record
	})
	for i := range 100 {
		f.put(fmt.Sprint("k", i), "1")
	}
	require.NoError(t, f.Compact(f.ctx, f.revision()))
	f.file.Settle()
	f.flicker("k1", 3)
	f.reopen(0)
	require.Less(t, f.Marks(), 10)
}

// History is discarded in the background for one type while New reads another, whose
// history stays as long as its own limits say.
func TestNew_IsNotDisturbedByUpkeep(t *testing.T) {
	f := newFixture(t)
	last := f.flicker("a", 1000)
	other, err := bolt.New(f.file, "others", f.cfg)
	require.NoError(t, err)
	o, err := other.Put(f.ctx, draft("o", "1"), nil, backend.PutOptions{})
	require.NoError(t, err)
	cfg := f.cfg
	cfg.Retain = window.Limits{MinEvents: 1000, MaxEvents: 1000, MaxBytes: 1}
	b, err := f.duringNew(cfg, func() {
		require.NoError(t, other.Compact(f.ctx, o.Revision))
		f.file.Settle()
	})
	require.NoError(t, err)
	compacted, err := b.Compacted(f.ctx)
	require.NoError(t, err)
	require.Zero(t, compacted)
	info, err := f.file.Info()
	require.NoError(t, err)
	require.NoError(t, info.LastError)
	require.Equal(t, bolt.TypeInfo{Revision: last.Revision}, info.Types["items"])
}

// A name is free again after a New whose user code ends the goroutine, as t.FailNow does.
func TestNew_GivesUpTheNameIfUserCodeEndsTheGoroutine(t *testing.T) {
	f := newFixture(t)
	f.put("a", "text 1")
	require.NoError(t, f.Backend.Close())
	cfg := f.cfg
	cfg.Codec = fatal{"text 1"}
	apart(func() { _, _ = bolt.New(f.file, "items", cfg) })
	var err error
	f.Backend, err = bolt.New(f.file, "items", f.cfg)
	require.NoError(t, err)
	require.Len(t, f.list(backend.ListOptions{}), 1)
}
