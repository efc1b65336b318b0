package bolt_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
	"github.com/watchmill/watchmill/store/window"
)

// minEvents is how much history a backend keeps on a full disk.
const minEvents = 12

// played is a script being played: a backend on a file, and the model that it must agree with.
type played struct {
	judge
	*contents
	ctx    context.Context
	path   string
	clock  *clock.Virtual
	cfg    bolt.Config
	broken sabotage

	file *bolt.File
	disk *journaltest.Faulty
	bolt *bolt.Backend
	// shown is the backend that the script uses: bolt, or what a sabotage has made of it.
	shown interface {
		backend.Backend
		backend.Emitter
	}
	// failed: nothing is written until the file is opened again, which then has hidden, a
	// change that was not acknowledged, if that is not nil. Its floor is at most hiddenFloor.
	failed      bool
	hidden      func()
	hiddenFloor store.Revision

	watches []*watched
	lists   []listed
}

func newPlay(t judge, dir string, broken sabotage) *played {
	t.Helper()
	dir, err := os.MkdirTemp(dir, "")
	require.NoError(t, err)
	p := &played{
		judge: t, contents: newContents(1), ctx: context.Background(), path: filepath.Join(dir, "state.db"),
		clock: clock.NewVirtual(time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC)), broken: broken,
		cfg: bolt.Config{Schema: backendtest.Schema(), FirstRevision: 1, Retain: window.Limits{MinEvents: minEvents, MaxBytes: 4096}},
	}
	p.open()
	return p
}

func (p *played) open() {
	p.Helper()
	var err error
	p.file, err = bolt.OpenOver(p.path, bolt.Options{Clock: p.clock}, func(j journal.Journal) journal.Journal {
		p.disk = journaltest.NewFaulty(j, p.path)
		return p.broken.over(p.disk)
	})
	require.NoError(p, err)
	p.bolt, err = bolt.New(p.file, "items", p.cfg)
	require.NoError(p, err)
	p.shown = p.broken.show(p.bolt)
	if p.hidden != nil {
		p.hidden()
	}
	p.failed, p.hidden, p.hiddenFloor = false, nil, 0
	p.expire(p.clock.Now(), p.clock.Now())
	p.settle()
}

// close closes the file, which ends the watches and leaves a file that is whole.
func (p *played) close() {
	p.Helper()
	require.NoError(p, p.file.Close())
	require.Zero(p, p.clock.Pending())
	for _, w := range p.watches {
		_, err := w.Next(1)
		require.ErrorIs(p, err, store.ErrClosed)
	}
	p.watches = nil
	report, err := bolt.Check(p.path)
	require.NoError(p, err)
	require.Empty(p, report.Problems)
}

// abandon closes the file, whatever has happened, and removes it.
func (p *played) abandon() {
	if p.file != nil {
		_ = p.file.Close()
	}
	_ = os.RemoveAll(filepath.Dir(p.path))
}

// settle waits for what goes on in the background, and learns what history that has discarded:
// none that has to be kept.
func (p *played) settle() {
	p.Helper()
	p.file.Settle()
	compacted, err := p.shown.Compacted(p.ctx)
	require.NoError(p, err)
	require.GreaterOrEqual(p, max(compacted, 1), p.oldest)
	if compacted > p.oldest {
		require.Greater(p, p.revision, store.Revision(minEvents))
		require.LessOrEqual(p, compacted, p.revision-minEvents)
		p.oldest = compacted
	}
}

// requireNewest checks the newest state.
func (p *played) requireNewest() {
	p.Helper()
	revision, err := p.shown.Revision(p.ctx)
	require.NoError(p, err)
	require.Equal(p, p.revision, revision)
	l, err := p.shown.List(p.ctx, backend.ListOptions{})
	require.NoError(p, err)
	require.Equal(p, p.revision, l.Revision)
	require.Equal(p, p.listed(p.revision, "", ""), describeAll(l.Items))
}

func describeAll(objects []*store.Object) []string {
	texts := []string{}
	for _, o := range objects {
		texts = append(texts, describe(o))
	}
	return texts
}

// audit checks what is left of the history, after a restart.
func (p *played) audit() {
	p.Helper()
	p.close()
	p.open()
	for at := p.oldest; at <= p.revision; at++ {
		p.list(listed{revision: at})
	}
	w := p.watch(p.oldest, "", false)
	for !p.caughtUp(w) {
		p.read(w, 1+len(p.events)%7)
	}
}

func (p *played) perform(s instruction) {
	p.Helper()
	switch key := playedKeys[s.A%len(playedKeys)]; s.Verb {
	case "put", "remove", "emit":
		p.write(p.writing(s.Verb, key, s.B, s.C))
	case "stale":
		p.writeStale(key, p.revisionNear(s.B))
	case "compact":
		p.compact(p.revisionNear(s.A))
	case "pass":
		before := p.clock.Now()
		p.clock.Advance([]time.Duration{time.Second, time.Minute, time.Hour}[s.A%3])
		if !p.failed {
			p.expire(before, p.clock.Now())
		}
		p.settle()
	case "rewrite":
		_, err := p.bolt.Rewrite(p.ctx)
		require.NoError(p, err)
	case "get":
		p.get(key)
	case "list":
		p.list(listed{revision: p.revisionNear(s.A), prefix: playedPrefixes[s.B%len(playedPrefixes)], limit: s.C % 4})
	case "page":
		if n := len(p.lists); n > 0 {
			p.list(p.lists[s.A%n])
		}
	case "watch":
		p.watch(p.revisionNear(s.A), playedPrefixes[s.B%len(playedPrefixes)], s.C%3 == 0)
	case "read":
		if n := len(p.watches); n > 0 {
			p.read(p.watches[s.A%n], 1+s.B%5)
		}
	case "full", "fail":
		w := p.writing([]string{"put", "remove", "emit", "compact"}[s.C%4], key, s.A, s.B)
		switch {
		case p.failed:
		case s.Verb == "full":
			p.writeOnAFullDisk(w)
		default:
			p.writeOnAFailingDisk(w, journaltest.Phase(s.B%2))
		}
	case "cut":
		if !p.failed {
			p.cutThePower(p.writing([]string{"put", "remove", "emit"}[s.C%3], key, s.A, s.B), uint64(s.B))
		}
	case "reopen":
		p.close()
		p.clock.Advance([]time.Duration{0, time.Minute, time.Hour}[s.A%3])
		p.cfg.Codec = versioned{write: uint8(s.B % 2)}
		p.open()
	case "restore":
		p.restore()
	}
}

var (
	playedKeys     = []string{"a/1", "a/2", "a-b", "b", "b/1"}
	playedPrefixes = []string{"", "a", "b", "a/1", "none"}
)

// revisionNear chooses a revision at the edges of the history, or in it.
func (p *played) revisionNear(n int) store.Revision {
	edges := []store.Revision{0, p.oldest - 1, p.oldest, p.oldest + 1, p.revision - 1, p.revision, p.revision + 1, math.MaxInt64, math.MaxUint64}
	if n%3 == 0 {
		return edges[n/3%len(edges)]
	}
	return p.oldest + store.Revision(n)%(p.revision-p.oldest+1)
}

// restore goes on in a file that is restored from a snapshot of this one.
func (p *played) restore() {
	p.Helper()
	var snapshot bytes.Buffer
	_, err := p.file.Snapshot(p.ctx, &snapshot)
	require.NoError(p, err)
	p.close()
	p.path = filepath.Join(filepath.Dir(p.path), fmt.Sprintf("restored-%d.db", p.revision))
	_, err = bolt.Restore(p.ctx, &snapshot, p.path, bolt.RestoreOptions{})
	require.NoError(p, err)
	if p.hidden != nil {
		p.hidden()
	}
	p.hidden = nil
	p.begin(p.revision + 1<<32)
	p.open()
}

// cutThePower writes, and opens the file as a power cut during the write may have left it: with
// the write or without.
func (p *played) cutThePower(w writing, seed uint64) {
	p.Helper()
	recorder, err := journaltest.NewRecorder(p.path, os.Getpagesize())
	require.NoError(p, err)
	writes := p.disk.Writes()
	_, err = w.do()
	require.NoError(p, err)
	p.file.Settle()
	commit, err := recorder.Record()
	require.NoError(p, err)
	if p.disk.Writes() != writes+1 { // history was discarded, too
		w.apply()
		p.settle()
		return
	}
	image, progress := commit.Crash(rand.New(rand.NewPCG(seed, seed)))
	p.close()
	require.NoError(p, os.WriteFile(p.path, image, 0o600))
	report, err := bolt.Check(p.path)
	require.NoError(p, err)
	require.Empty(p, report.Problems)
	there := report.Types["items"].Revision > p.revision
	require.True(p, there || progress != journaltest.Complete)
	require.False(p, there && progress == journaltest.Unsynced)
	if there {
		w.apply()
	}
	p.open()
}

// diskFull is the error of a disk without space, diskFailed that of one that fails.
func (p *played) diskFull() error {
	return &bolt.FullError{Path: p.path, Cause: syscall.ENOSPC}
}

func (p *played) diskFailed() error {
	return &bolt.FailedError{Path: p.path, Uncertain: true, Cause: syscall.EIO}
}
