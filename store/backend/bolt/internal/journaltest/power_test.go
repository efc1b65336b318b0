package journaltest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

// crashStates is how many crashes are tried: WATCHMILL_CRASH_STATES for the long form of
// the test.
func crashStates(t *testing.T) int {
	text := os.Getenv("WATCHMILL_CRASH_STATES")
	if text == "" {
		return 300
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// After a power cut at any moment of a commit, the file opens as it was before it
// or after it: never half, and after it once its data was synced and its meta page
// is whole.
func TestPower_LeavesTheFileAsBeforeOrAfter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	states, reached := crashStates(t), map[journaltest.Progress]int{}
	for n := 0; n < states; {
		w := newWriter(t, random)
		for range 15 {
			from := w.last
			c := w.commit()
			for range min(10, states-n) {
				image, progress := c.Crash(random)
				switch last := w.requireWhole(image, from); progress {
				case journaltest.Unsynced:
					require.Equal(t, from, last, "its meta page was not written")
				case journaltest.Complete:
					require.Equal(t, w.last, last, "it was complete")
				}
				reached[progress]++
				n++
			}
		}
		require.NoError(t, w.Close())
	}
	require.Greater(t, reached[journaltest.Unsynced], states/4)
	require.Greater(t, reached[journaltest.Complete], states/100)
}

// writer commits random batches and knows what each revision's record is.
type writer struct {
	testing.TB
	*journal.File
	*journaltest.Recorder
	random *rand.Rand
	path   string
	last   uint64
	newest map[string]uint64
	values map[uint64]string
}

func newWriter(t testing.TB, random *rand.Rand) *writer {
	w := &writer{TB: t, random: random, path: filepath.Join(t.TempDir(), "state.db"), last: 1, newest: map[string]uint64{}, values: map[uint64]string{}}
	var err error
	w.File, err = journal.Open(w.path, journal.Options{})
	require.NoError(t, err)
	_, err = w.Declare("pods", 1)
	require.NoError(t, err)
	w.Recorder, err = journaltest.NewRecorder(w.path, os.Getpagesize())
	require.NoError(t, err)
	return w
}

// commit makes one transaction of 1, some 20 or some 300 writes, or trims.
func (w *writer) commit() journaltest.Commit {
	w.Helper()
	if w.random.IntN(4) == 0 && w.last > 20 {
		b, err := w.Bounds("pods")
		require.NoError(w, err)
		if b.Floor == b.Trimmed || b.Trimmed <= 1 {
			require.NoError(w, w.Append(journal.Batch{Floors: []journal.Floor{{Log: "pods", Revision: w.last - w.random.Uint64N(20)}}}))
		} else {
			_, err := w.Trim("pods", journal.Budget{Records: 1 + w.random.IntN(500)})
			require.NoError(w, err)
		}
	} else {
		w.write([]int{1, 1 + w.random.IntN(20), 1 + w.random.IntN(300)}[w.random.IntN(3)])
	}
	c, err := w.Record()
	require.NoError(w, err)
	return c
}

func (w *writer) write(n int) {
	w.Helper()
	var b journal.Batch
	for range n {
		w.last++
		key := fmt.Sprint("key/", w.random.IntN(40))
		r := journal.Record{Kind: journal.Put, Key: []byte(key), Value: fmt.Appendf(nil, "%d %0*d", w.last, 1+w.random.IntN(400), 0), Prev: w.newest[key]}
		w.newest[key], w.values[w.last] = w.last, string(r.Value)
		b.Entries = append(b.Entries, journal.Entry{Log: "pods", Revision: w.last, Data: r.AppendTo(nil, w.last)})
	}
	require.NoError(w, w.Append(b))
}

// requireWhole opens an image and returns its revision: from, or that after the
// commit.
func (w *writer) requireWhole(image []byte, from uint64) uint64 {
	w.Helper()
	path := filepath.Join(w.TempDir(), "crashed.db")
	require.NoError(w, os.WriteFile(path, image, 0o600))
	f, err := journal.Open(path, journal.Options{})
	require.NoError(w, err)
	b, err := f.Bounds("pods")
	require.NoError(w, err)
	require.Contains(w, []uint64{from, w.last}, b.Last)
	require.NoError(w, f.Read(context.Background(), "pods", func(v journal.View) error {
		return v.Scan(0, b.Last, func(revision uint64, r journal.Record) (bool, error) {
			require.Equal(w, w.values[revision], string(r.Value))
			return true, nil
		})
	}))
	require.NoError(w, f.Close())
	require.NoError(w, os.Remove(path))
	return b.Last
}

func TestPower_FirstCreationLeavesNoFileOrAGoodOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	f, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	// What is not finished does not have the name yet: whatever there is of it, the
	// next start makes a file.
	random := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		require.NoError(t, os.Remove(path))
		torn := make([]byte, random.IntN(len(whole)))
		copy(torn, whole)
		for range 20 {
			if at := random.IntN(len(whole)); at < len(torn) {
				clear(torn[at:min(len(torn), at+random.IntN(10_000))])
			}
		}
		require.NoError(t, os.WriteFile(path+".watchmill-unfinished", torn, 0o600))
		f, err := journal.Open(path, journal.Options{})
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}
