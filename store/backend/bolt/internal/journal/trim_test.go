package journal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// Whatever is trimmed, all states from the floor on stay as they were, also over
// reopening, and nothing is left that no state needs.
func TestTrim_KeepsEveryStateFromTheFloorOn(t *testing.T) {
	for seed := range uint64(4) {
		f, random := newFixture(t, journal.Options{}), newRandom(seed)
		for range 12 {
			f.random(random, 1+random.IntN(10), 20, 60)
			b, err := f.Bounds(logName)
			require.NoError(t, err)
			f.raise(b.Oldest() + random.Uint64N(f.last-b.Oldest()+1))
			if random.IntN(2) == 0 {
				_, err := f.Trim(logName, journal.Budget{Records: 1 + random.IntN(50)})
				require.NoError(t, err)
			} else {
				f.trim(journal.Budget{})
			}
			if random.IntN(3) == 0 {
				f.requireChecked()
			}
			f.requireWhole()
		}
		f.raise(f.last)
		f.trim(journal.Budget{})
		require.Equal(t, len(f.newest), f.requireChecked().Records, "only the state is left")
		f.requireWhole()
	}
}

func TestTrim_TakesNoMoreThanItsBudget(t *testing.T) {
	f := newFixture(t, journal.Options{})
	for i := range 3000 {
		f.stage(journal.Put, fmt.Sprint(i%10), "x")
	}
	require.NoError(t, f.commit())
	f.raise(f.last)
	done, err := f.Trim(logName, journal.Budget{Records: 700, Time: time.Hour})
	require.NoError(t, err)
	require.Equal(t, journal.Trimmed{Deleted: 690, Through: 701, More: true}, done)
	done, err = f.Trim(logName, journal.Budget{Time: 1})
	require.NoError(t, err)
	require.Equal(t, uint64(701+512), done.Through, "one run, for the clock is looked at after it")
	f.requireChecked()
	done, err = f.Trim(logName, journal.Budget{Time: time.Hour})
	require.NoError(t, err)
	require.False(t, done.More)
	done, err = f.Trim(logName, journal.Budget{})
	require.NoError(t, err)
	require.Equal(t, journal.Trimmed{Through: f.last}, done, "there is nothing left to do")
	_, err = f.Trim("none", journal.Budget{})
	require.ErrorIs(t, err, journal.ErrUnknownLog)
}

// The revision goes on where it was, even when nothing is left that has it.
func TestTrim_NeverLosesTheRevision(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	f.stage(journal.Emit, "b", "2")
	require.NoError(t, f.commit())
	f.remove("a")
	f.raise(f.last)
	f.trim(journal.Budget{})
	require.Zero(t, f.requireChecked().Records)
	b, err := f.Bounds(logName)
	require.NoError(t, err)
	require.Equal(t, journal.Bounds{First: 1, Floor: 4, Trimmed: 4, Last: 4}, b)
	f.put("a", "again")
	f.requireChecked()
	f.requireWhole()
}

// Space is used again: the file does not grow for ever.
func TestTrim_BoundsTheFile(t *testing.T) {
	f, random := newFixture(t, journal.Options{}), newRandom(1)
	var size int64
	for round := range 40 {
		f.random(random, 2, 400, 300)
		if f.last > 1000 {
			f.raise(f.last - 1000)
		}
		f.trim(journal.Budget{})
		if round == 15 {
			size = f.size()
		}
	}
	u, err := f.Usage()
	require.NoError(t, err)
	require.LessOrEqual(t, u.Size, 2*size, "15 rounds, then 40")
	require.Less(t, u.Free, u.Size)
	f.requireChecked()
}

func TestRewrite_ReplacesRecordsWhereTheyAre(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	f.put("b", "2")
	f.put("a", "3")
	f.raise(3)
	f.trim(journal.Budget{})
	anew := func(revision, prev, created uint64, key, value string) journal.Entry {
		r := journal.Record{Kind: journal.Put, Tag: 9, Key: []byte(key), Value: []byte(value), Prev: prev, Created: created}
		return journal.Entry{Log: logName, Revision: revision, Data: r.AppendTo(nil, revision)}
	}
	require.NoError(t, f.Rewrite(logName, []journal.Entry{anew(3, 0, 3, "b", "two"), anew(4, 2, 2, "a", "three")}))
	f.requireChecked()
	require.Equal(t, map[string]link{"a": {4, 2, "three"}, "b": {3, 3, "two"}}, stateAt(t, f.File, 4))
	require.NoError(t, f.Rewrite(logName, []journal.Entry{anew(4, 2, 2, "a", "x"), anew(9, 0, 9, "z", "z")}), "what is not there is left out")
	require.Equal(t, map[string]link{"a": {4, 2, "x"}, "b": {3, 3, "two"}}, stateAt(t, f.File, 9))
	large := journal.Entry{Log: logName, Revision: 3, Data: make([]byte, journal.MaxRecord+1)}
	var tooLarge *journal.TooLargeError
	require.ErrorAs(t, f.Rewrite(logName, []journal.Entry{anew(4, 2, 2, "a", "y"), large}), &tooLarge)
	require.Equal(t, journal.TooLargeError{Size: journal.MaxRecord + 1, Limit: journal.MaxRecord}, *tooLarge)
	require.Equal(t, "x", stateAt(t, f.File, 4)["a"].Value, "all or none")
	f.requireChecked()
}

// The base is what its records are after they were replaced, also for what is trimmed next.
func TestRewrite_IsKnownToTheNextTrim(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	f.put("b", "2")
	f.raise(3)
	f.trim(journal.Budget{})
	r := journal.Record{Kind: journal.Put, Key: []byte("b"), Value: []byte("two"), Created: 3}
	require.NoError(t, f.Rewrite(logName, []journal.Entry{{Log: logName, Revision: 3, Data: r.AppendTo(nil, 3)}}))
	f.put("a", "3")
	f.raise(4)
	f.trim(journal.Budget{})
	f.requireChecked()
	require.ErrorIs(t, f.Rewrite("none", nil), journal.ErrUnknownLog)
}

// What was damaged while the file is open is not taken into the base, and says what it is.
func TestTrim_StopsAtDamage(t *testing.T) {
	for name, c := range map[string]struct {
		harm     func(f *fixture) error
		revision uint64
		what     string
	}{
		"damaged":       {func(f *fixture) error { return f.Spoil(logName, map[uint64]bool{3: true}) }, 3, "the record's checksum is wrong"},
		"missing":       {func(f *fixture) error { return f.Lose(logName, 3) }, 3, "the record is missing"},
		"the last":      {func(f *fixture) error { return f.Lose(logName, 6) }, 6, "the record is missing"},
		"a predecessor": {func(f *fixture) error { return f.Lose(logName, 2) }, 3, "its predecessor, revision 2, is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, journal.Options{})
			f.put("a", "value 1")
			f.raise(2)
			f.trim(journal.Budget{})
			last := f.flicker("a", 4)
			f.raise(last)
			before, err := f.Bounds(logName)
			require.NoError(t, err)
			require.NoError(t, c.harm(f))
			_, err = f.Trim(logName, journal.Budget{})
			var corrupt *journal.CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Equal(t, c.revision, corrupt.Revision)
			require.Equal(t, logName, corrupt.Log)
			require.Equal(t, c.what, corrupt.What)
			after, err := f.Bounds(logName)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}
