package journal_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// flipIn flips a bit of the value of the record at a revision, found by what is
// in it.
func flipIn(t testing.TB, path, value string) {
	t.Helper()
	image := read(t, path)
	require.True(t, bytes.Contains(image, []byte(value)), value)
	for at := bytes.Index(image, []byte(value)); at >= 0; at = bytes.Index(image, []byte(value)) { // also in old copies of the page
		image[at] ^= 1
	}
	require.NoError(t, os.WriteFile(path, image, 0o600))
}

// salvage opens the file, which is closed, and returns what it has repaired.
func (f *fixture) salvage() (repairs []string) {
	f.opts.Salvage = true
	f.open()
	u, err := f.Usage()
	require.NoError(f, err)
	b, err := f.Bounds(logName)
	require.NoError(f, err)
	if b.Last != f.last { // the state that is left has a revision of its own
		f.last = b.Last
		f.states[f.last] = maps.Clone(f.newest)
	}
	return u.Repairs
}

func TestSalvage_GivesUpHistoryButNoState(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "first")
	f.put("b", "bad record")
	f.put("b", "next")
	f.put("a", "last")
	require.NoError(t, f.Close())
	flipIn(t, f.path, "bad record")
	before := read(t, f.path)

	_, err := journal.Open(f.path, f.opts)
	var corrupt *journal.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, uint64(3), corrupt.Revision)
	require.Equal(t, logName, corrupt.Log)
	require.Greater(t, corrupt.Page, int64(1))
	require.ErrorContains(t, err, "by watchmill store salvage or Options.Salvage")
	require.Equal(t, before, read(t, f.path))

	repairs := f.salvage()
	require.Len(t, repairs, 1)
	require.Contains(t, repairs[0], "written again at revision 4")
	b, err := f.Bounds(logName)
	require.NoError(t, err)
	require.Equal(t, journal.Bounds{First: 1, Floor: 4, Trimmed: 4, Last: 5}, b)
	f.opts.Salvage = false
	f.requireChecked()
	f.requireWhole()
}

func TestSalvage_KeepsTheKeyOfAStateThatIsLost(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "first")
	f.put("b", "old")
	f.put("b", "bad record")
	f.put("c", "bad record")
	f.put("a", "last")
	require.NoError(t, f.Close())
	flipIn(t, f.path, "bad record")
	repairs := f.salvage()
	require.Len(t, repairs, 2)
	require.Contains(t, repairs[0], `the newest state of "b"`)
	require.Contains(t, repairs[1], `the newest state of "c"`)
	require.NoError(t, f.Read(f.ctx, logName, func(v journal.View) error {
		var got []string
		err := v.Scan(0, f.last, func(revision uint64, r journal.Record) (bool, error) {
			got = append(got, fmt.Sprintf("%d %s=%s %v", revision, r.Key, r.Value, r.Lost))
			return true, nil
		})
		require.Equal(t, []string{"4 b= true", "5 c= true", "6 a=last false"}, got)
		return err
	}))
	f.requireChecked()
	f.put("b", "new")
	f.raise(f.last)
	f.trim(journal.Budget{})
	f.requireChecked()
}

// Of several damaged records of one object, the newest takes its place.
func TestSalvage_KeepsTheNewestOfSeveralLostRecordsOfAnObject(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "first")
	f.put("a", "bad record")
	f.put("a", "bad record, too")
	f.put("b", "last")
	require.NoError(t, f.Close())
	flipIn(t, f.path, "bad record")
	repairs := f.salvage()
	require.Len(t, repairs, 2)
	require.Contains(t, repairs[1], `the newest state of "a"`)
	require.Equal(t, map[string]link{"a": {4, 2, ""}, "b": {5, 5, "last"}}, stateAt(t, f.File, f.last))
	require.Equal(t, 2, f.requireChecked().Records)
}

// An object that was made twice, of which all records are damaged, is there once.
func TestSalvage_LosesAnObjectOnce(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "first")
	f.put("b", "an old value")
	f.remove("b")
	f.put("b", "a new value")
	f.put("a", "last")
	require.NoError(t, f.Spoil(logName, map[uint64]bool{3: true, 4: true, 5: true}))
	require.NoError(t, f.Close())
	f.opts.Salvage = true
	f.open()
	f.opts.Salvage = false
	require.Equal(t, 2, f.requireChecked().Records)
}

// A value that was passed by is not an object, even if its record is damaged.
func TestSalvage_MakesNoObjectOfAValueThatWasPassedBy(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "first")
	f.stage(journal.Emit, "e", "bad record")
	f.put("b", "last")
	require.NoError(t, f.Close())
	flipIn(t, f.path, "bad record")
	repairs := f.salvage()
	require.Len(t, repairs, 1)
	require.Contains(t, repairs[0], `it seems to be an emitted value of "e", which is lost`)
	require.Equal(t, f.newest, stateAt(t, f.File, f.last))
	f.requireChecked()
}

// An object that was deleted stays so, even if the record of that is damaged.
func TestSalvage_BringsNoObjectBackThatWasDeleted(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "first")
	f.put("b", "good")
	f.remove("b")
	f.put("c", "bad record")
	f.remove("c")
	f.flicker("a", 3)
	f.put("d", "bad record")
	f.remove("d")
	f.put("d", "bad record")
	f.put("e", "last")
	require.NoError(t, f.Spoil(logName, map[uint64]bool{4: true, 5: true, 6: true, 10: true, 11: true, 12: true}))
	require.NoError(t, f.Close())
	repairs := f.salvage()
	require.Len(t, repairs, 6)
	require.Contains(t, repairs[0], `it seems to have deleted "b"`)
	require.Contains(t, repairs[2], `it seems to have deleted "c"`)
	require.Contains(t, repairs[4], `it seems to have deleted "d"`)
	require.Equal(t, map[string]link{"a": {9, 2, "2"}, "d": {12, 12, ""}, "e": {13, 13, "last"}}, stateAt(t, f.File, f.last))
	f.opts.Salvage = false
	require.Equal(t, 3, f.requireChecked().Records)
}

// History that was discarded stays so, whatever is damaged in what is left of it.
func TestSalvage_LowersNoFloor(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "bad record")
	f.put("a", "next")
	last := f.flicker("b", 5)
	f.raise(last - 1)
	require.NoError(t, f.Close())
	flipIn(t, f.path, "bad record")
	f.opts.Salvage = true
	f.open()
	b, err := f.Bounds(logName)
	require.NoError(t, err)
	require.Equal(t, journal.Bounds{First: 1, Floor: last - 1, Trimmed: last - 1, Last: last}, b)
	f.requireChecked()
	f.requireWhole()
}

// A record whose key cannot be believed is given up with all history; the rest of
// the state is there.
func TestSalvage_SaysWhatItDoesNotKnow(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "first")
	f.put("bad key", "old")
	f.put("bad key", "new")
	f.put("c", "last")
	require.NoError(t, f.Close())
	image := read(t, f.path)
	at := bytes.LastIndex(image, []byte("bad keynew"))
	require.Positive(t, at)
	for at >= 0 {
		image[at] = 'B'
		at = bytes.LastIndex(image, []byte("bad keynew"))
	}
	require.NoError(t, os.WriteFile(f.path, image, 0o600))
	repairs := f.salvage()
	require.Contains(t, repairs[0], "is unknown")
	b, err := f.Bounds(logName)
	require.NoError(t, err)
	require.Equal(t, journal.Bounds{First: 1, Floor: 6, Trimmed: 6, Last: 6}, b, "revision 5 may have been another state")
	require.Equal(t, map[string]link{"a": {2, 2, "first"}, "bad key": {3, 3, "old"}, "c": {5, 5, "last"}}, stateAt(t, f.File, f.last))
	f.requireChecked()
}

// A key that is damaged into none is not believed, even if nothing else is known of the object.
func TestSalvage_BelievesNoKeyThatCannotBe(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "first")
	f.put("ns/foo", "value")
	require.NoError(t, f.Close())
	image := bytes.ReplaceAll(read(t, f.path), []byte("ns/foovalue"), []byte("ns/fo/value"))
	require.NoError(t, os.WriteFile(f.path, image, 0o600))
	repairs := f.salvage()
	require.Len(t, repairs, 1)
	require.Contains(t, repairs[0], "its object is unknown")
	require.Equal(t, map[string]link{"a": {2, 2, "first"}}, stateAt(t, f.File, f.last))
	f.requireChecked()
}

// Any bad records in any log: salvage always gives a file that is whole, and all
// that was not damaged.
func TestSalvage_AlwaysGivesAWholeFile(t *testing.T) {
	for seed := range uint64(15) {
		random := newRandom(seed)
		f := newFixture(t, journal.Options{})
		f.random(random, 10, 10, 60)
		f.raise(random.Uint64N(f.last))
		f.trim(journal.Budget{Records: 1 + random.IntN(60)})
		lost := f.spoil(random, 1+random.IntN(4))
		f.salvage()
		require.Subset(t, keysOf(stateAt(t, f.File, f.last)), keysOf(without(f.newest, lost)))
		for key, l := range stateAt(t, f.File, f.last) {
			if want, ok := f.newest[key]; ok && !lost[want.Revision] {
				require.Equal(t, want, l)
			}
		}
		f.opts.Salvage = false
		f.requireChecked()
		f.newest = stateAt(t, f.File, f.last) // without what is lost
		f.random(random, 3, 10, 60)
		f.raise(f.last)
		f.trim(journal.Budget{})
		f.requireChecked()
	}
}

// spoil damages random records and closes the file.
func (f *fixture) spoil(random *rand.Rand, n int) map[uint64]bool {
	f.Helper()
	var all []uint64
	require.NoError(f, f.Read(f.ctx, logName, func(v journal.View) error {
		return v.Scan(0, f.last, func(revision uint64, r journal.Record) (bool, error) {
			all = append(all, revision)
			return true, nil
		})
	}))
	lost := map[uint64]bool{}
	for range n {
		lost[all[random.IntN(len(all))]] = true
	}
	require.NoError(f, f.Spoil(logName, lost))
	require.NoError(f, f.Close())
	return lost
}

func keysOf(state map[string]link) []string {
	keys := make([]string, 0, len(state))
	for key := range state {
		keys = append(keys, key)
	}
	return keys
}

func without(state map[string]link, lost map[uint64]bool) map[string]link {
	rest := map[string]link{}
	for key, l := range state {
		if !lost[l.Revision] {
			rest[key] = l
		}
	}
	return rest
}
