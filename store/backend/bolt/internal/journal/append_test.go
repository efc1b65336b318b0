package journal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

func TestDeclare_TakesNamesOfUpTo255Bytes(t *testing.T) {
	f := newFixture(t, journal.Options{})
	_, err := f.Declare(strings.Repeat("n", journal.MaxName), 1)
	require.NoError(t, err)
	_, err = f.Declare(strings.Repeat("n", journal.MaxName+1), 1)
	require.Error(t, err)
	f.requireChecked()
}

// A batch that does not fit changes nothing.
func TestAppend_TakesNoHoles(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	good := journal.Record{Kind: journal.Put, Key: []byte("x"), Created: 3}.AppendTo(nil, 3)
	for name, b := range map[string]journal.Batch{
		"hole":          {Entries: []journal.Entry{{Log: logName, Revision: 4, Data: good}}},
		"again":         {Entries: []journal.Entry{{Log: logName, Revision: 2, Data: good}}},
		"later hole":    {Entries: []journal.Entry{{Log: logName, Revision: 3, Data: good}, {Log: logName, Revision: 5, Data: good}}},
		"no log":        {Entries: []journal.Entry{{Log: "none", Revision: 3, Data: good}}},
		"future floor":  {Floors: []journal.Floor{{Log: logName, Revision: 3}}},
		"floor, no log": {Floors: []journal.Floor{{Log: "none", Revision: 1}}},
	} {
		require.Error(t, f.Append(b), name)
	}
	for name, b := range map[string]journal.Batch{
		"record": {Entries: []journal.Entry{{Log: "none", Revision: 1, Data: good}}},
		"floor":  {Floors: []journal.Floor{{Log: "none"}}},
	} {
		require.ErrorIs(t, f.Append(b), journal.ErrUnknownLog, "the first %s of no log", name)
	}
	err := f.Append(journal.Batch{Entries: []journal.Entry{{Log: logName, Revision: 3, Data: make([]byte, journal.MaxRecord+1)}}})
	var large *journal.TooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, journal.TooLargeError{Size: journal.MaxRecord + 1, Limit: journal.MaxRecord}, *large)
	f.requireChecked()
	f.requireWhole()
}

// Compactions can come in any order, also in one batch.
func TestAppend_LowersNoFloor(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 3, 10, 10)
	require.NoError(t, f.Append(journal.Batch{Floors: []journal.Floor{{Log: logName, Revision: 4}, {Log: logName, Revision: 3}}}))
	f.raise(2)
	b, err := f.Bounds(logName)
	require.NoError(t, err)
	require.Equal(t, uint64(4), b.Floor)
	f.trim(journal.Budget{})
	f.requireChecked()
	f.requireWhole()
}

// The floors of several logs are raised at once, and last.
func TestAppend_RaisesTheFloorsOfAllLogs(t *testing.T) {
	f := newFixture(t, journal.Options{})
	last := f.flicker("a", 3)
	logs := []string{"aaa", logName, "zzz"}
	var floors []journal.Floor
	for _, name := range logs {
		if name == logName {
			floors = append(floors, journal.Floor{Log: name, Revision: last})
			continue
		}
		_, err := f.Declare(name, 7)
		require.NoError(t, err)
		floors = append(floors, journal.Floor{Log: name, Revision: 7})
	}
	require.NoError(t, f.Append(journal.Batch{Floors: floors}))
	f.reopen()
	for _, floor := range floors {
		b, err := f.Bounds(floor.Log)
		require.NoError(t, err)
		require.Equal(t, floor.Revision, b.Floor, floor.Log)
	}
}

// Each growth of the file costs a sync, so there are few of them, and they leave little unused.
func TestAppend_GrowsTheFileInSteps(t *testing.T) {
	eighth := func(size int64) int64 { return max(64<<10, size/8) }
	for name, c := range map[string]struct {
		opts          journal.Options
		batch, growth int
		step          func(size int64) int64
	}{
		"by an eighth":              {journal.Options{}, 20, 3 << 20, eighth},
		"by a 64th of its MaxBytes": {journal.Options{MaxBytes: 2 * leastMaxBytes}, 1, int(leastMaxBytes), func(size int64) int64 { return min(leastMaxBytes/32, eighth(size)) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, c.opts)
			page := int64(pageSize)
			value := string(make([]byte, scaled(3000)))
			atMost := int64(c.batch+5) * page // that a batch takes: a page for each record, and those that lead to them
			last := f.size()
			for end := last + int64(c.growth); last < end; {
				for range c.batch {
					f.stage(journal.Put, fmt.Sprint(f.last), value)
				}
				require.NoError(t, f.commit())
				u, err := f.Usage()
				require.NoError(t, err)
				require.InDelta(t, int64(f.last)*page, u.Size-u.Free, float64(atMost), "each record has a page")
				size := u.Size
				if size == last {
					continue
				}
				require.Zero(t, size%page)
				require.GreaterOrEqual(t, size-last, c.step(last-atMost)-page)
				require.LessOrEqual(t, size-last, c.step(last)+atMost)
				last = size
			}
		})
	}
}

// Records are only added, so pages are full, however small the batches are.
func TestAppend_FillsThePages(t *testing.T) {
	f := newFixture(t, journal.Options{})
	const batches, batch = 40, 10
	size := scaled(1000)
	for i := range batches * batch {
		f.stage(journal.Put, fmt.Sprint(i%batch), string(make([]byte, size)))
		if i%batch == batch-1 {
			require.NoError(t, f.commit())
		}
	}
	u, err := f.Usage()
	require.NoError(t, err)
	require.Less(t, u.Size-u.Free, int64(batches*batch*size*3/2))
}
