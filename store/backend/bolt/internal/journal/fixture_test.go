package journal_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

var noon = time.Date(2026, 9, 1, 12, 0, 0, 123456789, time.UTC)

// fixture is a file with one log that the tests write to, and a model of it.
type fixture struct {
	testing.TB
	ctx  context.Context
	path string
	opts journal.Options
	*journal.File
	model
}

// model is what a log should hold.
type model struct {
	first   uint64
	last    uint64
	newest  map[string]link            // objects that exist
	states  map[uint64]map[string]link // after each revision
	pending []journal.Entry
}

type link struct {
	Revision, Created uint64
	Value             string
}

const logName = "pods"

func newFixture(t testing.TB, opts journal.Options) *fixture {
	t.Helper()
	return newFixtureAt(t, filepath.Join(t.TempDir(), "state.db"), opts)
}

func newFixtureAt(t testing.TB, path string, opts journal.Options) *fixture {
	t.Helper()
	f := &fixture{
		TB: t, ctx: context.Background(), path: path, opts: opts,
		model: model{first: 1, last: 1, newest: map[string]link{}, states: map[uint64]map[string]link{}},
	}
	f.states[1] = map[string]link{}
	f.open()
	b, err := f.Declare(logName, 1)
	require.NoError(t, err)
	require.Equal(t, journal.Bounds{First: 1, Trimmed: 1, Last: 1}, b)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// newMostlyFree returns a fixture whose file is mostly free space, and the file's size.
func newMostlyFree(t testing.TB) (f *fixture, size int64) {
	t.Helper()
	f = newFixture(t, journal.Options{})
	f.random(newRandom(1), 20, 100, 5000)
	f.raise(f.last)
	f.trim(journal.Budget{})
	return f, f.size()
}

// requireKind checks what is at path itself: fs.ModeSymlink for a link, zero for a file.
func requireKind(t testing.TB, path string, kind fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, kind, info.Mode().Type())
}

// size returns the length of the file.
func (f *fixture) size() int64 {
	f.Helper()
	u, err := f.Usage()
	require.NoError(f, err)
	return u.Size
}

func (f *fixture) open() {
	f.Helper()
	var err error
	f.File, err = journal.Open(f.path, f.opts)
	require.NoError(f, err)
}

func (f *fixture) reopen() {
	f.Helper()
	require.NoError(f, f.Close())
	f.open()
}

// stage adds a record to the batch to come.
func (f *fixture) stage(kind journal.Kind, key, value string) {
	f.last++
	prev, exists := f.newest[key]
	r := journal.Record{Kind: kind, Key: []byte(key), Value: []byte(value), Written: noon, Prev: prev.Revision, Created: prev.Created}
	switch kind {
	case journal.Put:
		if !exists {
			r.Created = f.last
		}
		f.newest[key] = link{f.last, r.Created, value}
	case journal.Delete:
		require.True(f, exists)
		r.Value = nil
		delete(f.newest, key)
	case journal.Emit:
		r.Prev, r.Created = 0, 0
	}
	f.states[f.last] = maps.Clone(f.newest)
	f.pending = append(f.pending, journal.Entry{Log: logName, Revision: f.last, Data: r.AppendTo(nil, f.last)})
}

// commit appends what was staged.
func (f *fixture) commit() error {
	err := f.Append(journal.Batch{Entries: f.pending})
	f.pending = nil
	return err
}

func (f *fixture) put(key, value string) {
	f.Helper()
	f.stage(journal.Put, key, value)
	require.NoError(f, f.commit())
}

// flicker updates an object n times, and returns the last revision.
func (f *fixture) flicker(key string, n int) uint64 {
	f.Helper()
	for i := range n {
		f.put(key, fmt.Sprint(i))
	}
	return f.last
}

func (f *fixture) remove(key string) {
	f.Helper()
	f.stage(journal.Delete, key, "")
	require.NoError(f, f.commit())
}

// random commits batches of random records.
func (f *fixture) random(random *rand.Rand, batches, most, valueSize int) {
	f.Helper()
	for range batches {
		for range 1 + random.IntN(most) {
			f.stageRandom(random, valueSize)
		}
		require.NoError(f, f.commit())
	}
}

func (f *fixture) stageRandom(random *rand.Rand, valueSize int) {
	key := fmt.Sprintf("ns/%d", random.IntN(30))
	value := fmt.Sprintf("%d %0*d", f.last, 1+random.IntN(valueSize), 0)
	_, exists := f.newest[key]
	switch n := random.IntN(10); {
	case n == 0:
		f.stage(journal.Emit, key, value)
	case n < 3 && exists:
		f.stage(journal.Delete, key, "")
	default:
		f.stage(journal.Put, key, value)
	}
}

func (f *fixture) raise(floor uint64) {
	f.Helper()
	require.NoError(f, f.Append(journal.Batch{Floors: []journal.Floor{{Log: logName, Revision: floor}}}))
}

// trim trims to the floor.
func (f *fixture) trim(b journal.Budget) (deleted int) {
	f.Helper()
	for {
		t, err := f.Trim(logName, b)
		require.NoError(f, err)
		if deleted += t.Deleted; !t.More {
			return deleted
		}
	}
}

// stateAt rebuilds the state at a revision from the log.
func stateAt(t testing.TB, j journal.Journal, revision uint64) map[string]link {
	t.Helper()
	state := map[string]link{}
	require.NoError(t, j.Read(context.Background(), logName, func(v journal.View) error {
		return v.Scan(0, revision, func(at uint64, r journal.Record) (bool, error) {
			switch r.Kind {
			case journal.Put:
				state[string(r.Key)] = link{at, r.Created, string(r.Value)}
			case journal.Delete:
				delete(state, string(r.Key))
			}
			return true, nil
		})
	}))
	return state
}

// requireWhole checks the log against the model: the newest state and the states
// at some revisions that are still known.
func (f *fixture) requireWhole() {
	f.Helper()
	b, err := f.Bounds(logName)
	require.NoError(f, err)
	require.Equal(f, f.last, b.Last)
	for _, revision := range []uint64{b.Oldest(), (b.Oldest() + b.Last) / 2, b.Last} {
		require.Equal(f, f.states[revision], stateAt(f, f.File, revision), "at revision %d", revision)
	}
}

// requireChecked closes the file, checks it, and opens it again.
func (f *fixture) requireChecked() *journal.Report {
	f.Helper()
	require.NoError(f, f.Close())
	report, err := journal.Check(f.path, 0)
	require.NoError(f, err)
	require.Empty(f, report.Problems)
	f.open()
	return report
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	return image
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }
