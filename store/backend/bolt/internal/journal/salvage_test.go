package journal_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/pages"
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
	require.ErrorContains(t, err, "open it with Options.Salvage")
	require.Equal(t, before, read(t, f.path))

	f.opts.Salvage = true
	f.open()
	u, err := f.Usage()
	require.NoError(t, err)
	require.Len(t, u.Repairs, 1)
	require.Contains(t, u.Repairs[0], "written again at revision 4")
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
	f.opts.Salvage = true
	f.open()
	u, err := f.Usage()
	require.NoError(t, err)
	require.Len(t, u.Repairs, 2)
	require.Contains(t, u.Repairs[0], `the newest of "b"`)
	require.Contains(t, u.Repairs[1], `the newest of "c"`)
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

// A value that was passed by is no object, also if its record is damaged.
func TestSalvage_MakesNoObjectOfAValueThatWasPassedBy(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "first")
	f.stage(journal.Emit, "e", "bad record")
	f.put("b", "last")
	require.NoError(t, f.Close())
	flipIn(t, f.path, "bad record")
	f.opts.Salvage = true
	f.open()
	u, err := f.Usage()
	require.NoError(t, err)
	require.Len(t, u.Repairs, 1)
	require.Contains(t, u.Repairs[0], `it seems to have passed a value by for "e", which is lost`)
	require.Equal(t, f.newest, stateAt(t, f.File, f.last))
	f.requireChecked()
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

// A file with very many damaged records has a report of bounded size, and is salvaged
// all the same.
func TestCheck_ListsABoundedNumberOfProblems(t *testing.T) {
	f := newFixture(t, journal.Options{})
	const records = 3*journal.MaxProblems + 1
	for i := range records / 2 {
		f.stage(journal.Put, fmt.Sprint(i), "bad record") // and the next continues none
		f.stage(journal.Put, fmt.Sprint(i), "next")
	}
	require.NoError(t, f.commit())
	require.NoError(t, f.Close())
	flipIn(t, f.path, "bad record")
	report, err := journal.Check(f.path, 0)
	require.NoError(t, err)
	require.Len(t, report.Problems, journal.MaxProblems)
	require.Equal(t, records/2-journal.MaxProblems, report.Unlisted)

	_, err = journal.Open(f.path, journal.Options{})
	require.ErrorContains(t, err, "revision 2: damaged")
	f.opts.Salvage = true
	f.open()
	u, err := f.Usage()
	require.NoError(t, err)
	require.Len(t, u.Repairs, records/2)
	f.requireChecked()
}

// Of what does not fit together it lists a bounded number, too.
func TestCheck_ListsABoundedNumberOfBrokenChains(t *testing.T) {
	f := newFixture(t, journal.Options{})
	const deletions = journal.MaxProblems + 7
	for i := range deletions {
		f.last++
		r := journal.Record{Kind: journal.Delete, Created: 1, Key: fmt.Append(nil, i)}
		f.pending = append(f.pending, journal.Entry{Log: logName, Revision: f.last, Data: r.AppendTo(nil, f.last)})
	}
	require.NoError(t, f.commit())
	require.NoError(t, f.Close())
	report, err := journal.Check(f.path, 0)
	require.NoError(t, err)
	require.Len(t, report.Problems, journal.MaxProblems)
	require.ErrorContains(t, report.Problems[0], "revision 2: damaged: it deletes what does not exist")
	require.Equal(t, 7, report.Unlisted)
	require.Equal(t, deletions, report.Records)
	require.Equal(t, map[string]journal.Bounds{logName: {First: 1, Trimmed: 1, Last: f.last}}, report.Logs)
	require.Empty(t, report.Warnings)
}

// Each record of an object continues the one before it.
func TestCheck_SaysWhatDoesNotContinueAnObject(t *testing.T) {
	put := func(prev, created uint64) journal.Record {
		return journal.Record{Kind: journal.Put, Key: []byte("a"), Prev: prev, Created: created}
	}
	for _, c := range []struct {
		name    string
		records []journal.Record
		wrong   []string
	}{
		{"whole", []journal.Record{put(0, 2), put(2, 2), {Kind: journal.Delete, Key: []byte("a"), Prev: 3, Created: 2}, put(0, 5)}, nil},
		{"an event of its key", []journal.Record{put(0, 2), {Kind: journal.Emit, Key: []byte("a")}, put(2, 2)}, nil},
		{"another predecessor", []journal.Record{put(0, 2), put(0, 2), put(3, 2)}, []string{"revision 3: damaged: it does not continue the object's last record"}},
		{"another creation", []journal.Record{put(0, 2), put(2, 3)}, []string{"revision 3: damaged: the object was created at another revision"}},
		{"deleted twice", []journal.Record{put(0, 2), {Kind: journal.Delete, Key: []byte("a"), Prev: 2, Created: 2}, {Kind: journal.Delete, Key: []byte("a"), Prev: 2, Created: 2}},
			[]string{"revision 4: damaged: it deletes what does not exist"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, journal.Options{})
			for _, r := range c.records {
				f.last++
				f.pending = append(f.pending, journal.Entry{Log: logName, Revision: f.last, Data: r.AppendTo(nil, f.last)})
			}
			require.NoError(t, f.commit())
			require.NoError(t, f.Close())
			report, err := journal.Check(f.path, 0)
			require.NoError(t, err)
			require.Len(t, report.Problems, len(c.wrong))
			for i, text := range c.wrong {
				require.ErrorContains(t, report.Problems[i], text)
			}
		})
	}
}

// A meta page that cannot be read has no consequence as long as the other one can.
func TestCheck_WarnsOfAMetaPage(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	require.NoError(t, f.Close())
	image := read(t, f.path)
	metas, err := pages.ReadMetas(bytes.NewReader(image), int64(len(image)))
	require.NoError(t, err)
	older := 1 - metas.Newest.Page
	clear(image[older*pageSize:][:pageSize])
	require.NoError(t, os.WriteFile(f.path, image, 0o600))
	report, err := journal.Check(f.path, 0)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Len(t, report.Warnings, 1)
	require.Contains(t, report.Warnings[0], fmt.Sprintf("page %d: it is not a meta page", older))
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
	f.opts.Salvage = true
	f.open()
	u, err := f.Usage()
	require.NoError(t, err)
	require.Contains(t, u.Repairs[0], "is not known")
	require.Equal(t, map[string]link{"a": {2, 2, "first"}, "bad key": {3, 3, "old"}, "c": {5, 5, "last"}}, stateAt(t, f.File, f.last))
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
		f.opts.Salvage = true
		f.open()
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
