package journal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
)

// damaged is a file with all that a file can have: several logs, a base and a
// history, values of several pages, free pages. Older is the file some commits
// before.
func damaged(t testing.TB) (older, image []byte, states map[uint64]map[string]link) {
	f, random := newFixture(t, journal.Options{}), newRandom(7)
	f.random(random, 10, 20, scaled(200))
	f.stage(journal.Put, "large", string(bytes.Repeat([]byte("large "), scaled(3000))))
	f.random(random, 5, 20, scaled(200))
	f.raise(f.last - 30)
	f.trim(journal.Budget{})
	_, err := f.Declare("nodes", 1)
	require.NoError(t, err)
	f.random(random, 3, 10, scaled(200))
	older = read(t, f.path)
	f.random(random, 3, 5, scaled(200))
	f.requireChecked()
	require.NoError(t, f.Close())
	return older, read(t, f.path), f.states
}

// outcome counts what came of opening damaged files: an error, the newest state, or an
// older one.
type outcome struct{ refused, unharmed, older int }

// open opens a damaged image and says what came of it: an error that names file
// and, but for rare damage, page; or the state that was written.
func (o *outcome) open(t testing.TB, image []byte, states map[uint64]map[string]link, what string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	require.NoError(t, os.WriteFile(path, image, 0o600))
	f, err := journal.Open(path, journal.Options{})
	if err != nil {
		o.refused++
		require.ErrorContains(t, err, path, what)
		var corrupt *journal.CorruptError
		var format *journal.FormatError
		if !errors.As(err, &corrupt) {
			require.True(t, errors.As(err, &format), "%s: %v", what, err)
		}
		require.True(t, bytes.Equal(image, read(t, path)), "%s: the file was changed", what)
		return
	}
	b, err := f.Bounds(logName)
	require.NoError(t, err, what)
	require.Equal(t, states[b.Last], stateAt(t, f, b.Last), what)
	require.Equal(t, states[b.Oldest()], stateAt(t, f, b.Oldest()), what)
	if b.Last == newestOf(states) {
		o.unharmed++
	} else {
		o.older++
		require.Contains(t, what, "meta", "%s: opened at revision %d", what, b.Last)
	}
	require.NoError(t, f.Close(), what)
}

func newestOf(states map[uint64]map[string]link) (newest uint64) {
	for revision := range states {
		newest = max(newest, revision)
	}
	return newest
}

// pageSize is that of the system, which new files have.
var pageSize = os.Getpagesize()

// scaled returns a number of bytes that is the same part of a page as n is of one of 4 KiB.
func scaled(n int) int { return n * pageSize / (4 << 10) }

func pageName(page int) string {
	if page < 2 {
		return fmt.Sprintf("meta page %d", page)
	}
	return fmt.Sprintf("page %d", page)
}

func TestOpen_SurvivesZeroedPages(t *testing.T) {
	_, image, states := damaged(t)
	var o outcome
	for page := range len(image) / pageSize {
		zeroed := bytes.Clone(image)
		clear(zeroed[page*pageSize:][:pageSize])
		o.open(t, zeroed, states, pageName(page)+" zeroed")
	}
	require.GreaterOrEqual(t, o.refused, 10)
	require.LessOrEqual(t, o.older, 1, "the newest meta page alone leads back")
}

func TestOpen_SurvivesTruncations(t *testing.T) {
	_, image, states := damaged(t)
	var o outcome
	for size := 0; size < len(image); size += pageSize {
		o.open(t, image[:size], states, fmt.Sprintf("%d bytes", size))
		o.open(t, image[:size+1+size%777], states, fmt.Sprintf("%d bytes", size+1+size%777))
	}
	require.Greater(t, o.refused, 20)
	require.Zero(t, o.older)
}

func TestOpen_SurvivesFlippedBits(t *testing.T) {
	_, image, states := damaged(t)
	random := newRandom(11)
	var o outcome
	for range 1000 {
		flipped := bytes.Clone(image)
		at := random.IntN(len(flipped))
		flipped[at] ^= 1 << random.IntN(8)
		o.open(t, flipped, states, fmt.Sprintf("a bit of %s, byte %d", pageName(at/pageSize), at%pageSize))
	}
	require.Greater(t, o.refused, 80)
	require.Positive(t, o.unharmed)
}

// A bit of the page that says where everything else is, also of its keys, is found
// out: no other page is left to contradict it.
func TestOpen_SurvivesEveryFlippedBitOfTheHeads(t *testing.T) {
	_, image, states := damaged(t)
	metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	start := int(metas.Newest.Root) * pageSize
	end := start + len(bytes.TrimRight(image[start:start+pageSize], "\x00"))
	require.Contains(t, string(image[start:end]), "watchmill/"+logName)
	var o outcome
	for i := start; i < end; i++ {
		for bit := range 8 {
			flipped := bytes.Clone(image)
			flipped[i] ^= 1 << bit
			o.open(t, flipped, states, fmt.Sprintf("bit %d of %s, byte %d", bit, pageName(start/pageSize), i-start))
		}
	}
	require.Zero(t, o.older)
	require.Greater(t, o.refused, 1000)
}

// A page that the disk has not written, though it said so, is found out, though
// it is a good page of the same file.
func TestOpen_SurvivesStaleAndSwappedPages(t *testing.T) {
	older, image, states := damaged(t)
	random := newRandom(13)
	var o outcome
	for page := range len(older) / pageSize {
		stale := bytes.Clone(image)
		copy(stale[page*pageSize:][:pageSize], older[page*pageSize:])
		o.open(t, stale, states, pageName(page)+" stale")
	}
	for range 200 {
		swapped := bytes.Clone(image)
		from, to := random.IntN(len(image)/pageSize), random.IntN(len(image)/pageSize)
		copy(swapped[to*pageSize:][:pageSize], image[from*pageSize:])
		o.open(t, swapped, states, fmt.Sprintf("%s from page %d", pageName(to), from))
	}
	require.Greater(t, o.refused, 30)
}

// Each page, as it was after any commit before, is found out or unharmed: also
// where two commits in turn use the same pages.
func TestOpen_FindsEveryStalePage(t *testing.T) {
	f, random := newFixture(t, journal.Options{}), newRandom(5)
	var images [][]byte
	for range 30 {
		f.random(random, 1, 4, scaled(100))
		if random.IntN(4) == 0 {
			f.raise(f.last - random.Uint64N(min(f.last, 20)))
			f.trim(journal.Budget{})
		}
		images = append(images, read(t, f.path))
	}
	require.NoError(t, f.Close())
	newest := images[len(images)-1]
	var o outcome
	for _, older := range images[:len(images)-1] {
		for page := range len(older) / pageSize {
			if page < 2 || bytes.Equal(older[page*pageSize:][:pageSize], newest[page*pageSize:][:pageSize]) {
				continue
			}
			stale := bytes.Clone(newest)
			copy(stale[page*pageSize:], older[page*pageSize:][:pageSize])
			o.open(t, stale, f.states, pageName(page)+" stale")
		}
	}
	require.Greater(t, o.refused, 50)
	require.Zero(t, o.older)
}

// Pages that are whole, each by itself, and of several commits do not make a log.
func TestOpen_FindsWhatDoesNotFitTogether(t *testing.T) {
	bucket := func(tx *bbolt.Tx) *bbolt.Bucket { return tx.Bucket([]byte("watchmill/" + logName)) }
	remove := func(tx *bbolt.Tx, from, through uint64) error {
		for revision := from; revision <= through; revision++ {
			if err := bucket(tx).Delete(binary.BigEndian.AppendUint64(nil, revision)); err != nil {
				return err
			}
		}
		return nil
	}
	for what, change := range map[string]func(tx *bbolt.Tx) error{
		"the state at revision 20 is not what was written":       func(tx *bbolt.Tx) error { return remove(tx, 20, 20) },
		"the records before it are missing, from revision 27 on": func(tx *bbolt.Tx) error { return remove(tx, 27, 27) },
		"revision 30: damaged: the records from here to 30":      func(tx *bbolt.Tx) error { return remove(tx, 30, 30) },
		"the log ends at 29: a page is an old one":               func(tx *bbolt.Tx) error { return bucket(tx).SetSequence(29) },
		"the log is missing":                                     func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("watchmill/" + logName)) },
		"is a bbolt file, but not one that watchmill made":       func(tx *bbolt.Tx) error { return tx.Bucket([]byte("watchmill")).Delete([]byte("file")) },
		`nothing is known about the key "other"`: func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("watchmill")).Put([]byte("other"), []byte("x"))
		},
		"the log ends before its floor, 25": func(tx *bbolt.Tx) error {
			return errors.Join(remove(tx, 21, 30), bucket(tx).SetSequence(20))
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t, journal.Options{})
			for f.last < 30 {
				f.put(fmt.Sprint(f.last%10), "x")
			}
			f.raise(20)
			f.trim(journal.Budget{})
			f.raise(25)
			require.NoError(t, f.Close())
			db, err := bbolt.Open(f.path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.Update(change))
			require.NoError(t, db.Close())
			_, err = journal.Open(f.path, journal.Options{})
			require.ErrorContains(t, err, f.path)
			require.ErrorContains(t, err, what)
		})
	}
}

// A file that is cut off while it is copied is damaged, and not merely as large as it is.
func TestShrink_SurvivesDamageWhileItCopies(t *testing.T) {
	f, _ := newMostlyFree(t)
	require.NoError(t, f.Close())
	ctx := onceThere{t.Context(), journal.Unfinished(f.path), func() error { return os.Truncate(f.path, int64(2*pageSize)) }}
	_, _, err := journal.Shrink(ctx, f.path, 0)
	require.ErrorIs(t, err, journal.ErrCorrupt)
	require.NotContains(t, err.Error(), "stays as large as it is")
	require.NoFileExists(t, journal.Unfinished(f.path))
	_, err = journal.Open(f.path, journal.Options{})
	require.ErrorIs(t, err, journal.ErrCorrupt, "and the lock is free")
}

// A file that is cut off, or overwritten, while it is open gives errors.
func TestFile_SurvivesDamageWhileItIsOpen(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"cut off": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, int64(2*pageSize))) },
		"zeroed": func(t *testing.T, path string) {
			image := read(t, path)
			clear(image[2*pageSize:])
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = file.Write(image)
			require.NoError(t, err)
			require.NoError(t, file.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, journal.Options{})
			f.random(newRandom(1), 20, 20, 200)
			harm(t, f.path)
			err := f.Read(f.ctx, logName, func(v journal.View) error {
				return v.Scan(0, f.last, func(uint64, journal.Record) (bool, error) { return true, nil })
			})
			var corrupt *journal.CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Equal(t, f.path, corrupt.Path)
			require.EqualValues(t, journal.NoPage, corrupt.Page)
			require.NotEmpty(t, corrupt.What)
			for range 2 {
				f.stage(journal.Put, "x", "x")
				err = f.commit()
				var failed *journal.FailedError
				require.ErrorAs(t, err, &failed)
				require.False(t, failed.Uncertain, "it was not tried")
				require.ErrorIs(t, err, journal.ErrCorrupt, "it says why")
				require.Equal(t, f.path, failed.Path)
			}
			_, err = f.Trim(logName, journal.Budget{})
			require.ErrorIs(t, err, journal.ErrFailed)
			_, err = f.Snapshot(f.ctx, io.Discard, time.Minute)
			require.ErrorIs(t, err, journal.ErrCorrupt)
			require.NoError(t, f.Close(), "it does not hang")
			_, err = journal.Open(f.path, journal.Options{})
			require.ErrorIs(t, err, journal.ErrCorrupt, "and the lock is free")
		})
	}
}

// The head says which records are the base: one that is damaged while the file is open is not
// believed.
func TestRead_FindsThatTheHeadWasDamaged(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	image := read(t, f.path)
	head := []byte("log/" + logName)
	require.Contains(t, string(image), string(head))
	file, err := os.OpenFile(f.path, os.O_WRONLY, 0)
	require.NoError(t, err)
	for at := bytes.Index(image, head); at >= 0; at = bytes.Index(image, head) { // also in old copies of the page
		at += len(head)
		image[at-1]++ // do not find it again
		_, err = file.WriteAt([]byte{^image[at]}, int64(at))
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	err = f.Read(f.ctx, logName, func(journal.View) error { return nil })
	var corrupt *journal.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, logName, corrupt.Log)
	require.Equal(t, f.path, corrupt.Path)
}
