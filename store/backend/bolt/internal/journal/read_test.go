package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// pick returns the values of records, by Pick.
func (f *fixture) pick(ctx context.Context, revisions ...uint64) (values []string, err error) {
	f.Helper()
	err = f.Read(ctx, logName, func(v journal.View) error {
		return v.Pick(slices.Values(revisions), func(revision uint64, r journal.Record) error {
			require.Equal(f, revisions[len(values)], revision)
			values = append(values, string(r.Value))
			return nil
		})
	})
	return values, err
}

func TestPick_FindsRecordsNearAndFar(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 100, 30, 100)
	var all []string
	var revisions []uint64
	require.NoError(t, f.Read(f.ctx, logName, func(v journal.View) error {
		return v.Scan(0, f.last, func(revision uint64, r journal.Record) (bool, error) {
			all, revisions = append(all, string(r.Value)), append(revisions, revision)
			return true, nil
		})
	}))
	for _, step := range []int{1, 2, 15, 16, 17, 18, 100, 500} {
		for first := range 3 {
			var wanted []uint64
			var values []string
			for i := first; i < len(all); i += step {
				wanted, values = append(wanted, revisions[i]), append(values, all[i])
			}
			found, err := f.pick(f.ctx, wanted...)
			require.NoError(t, err)
			require.Equal(t, values, found, "every %d from %d", step, first)
		}
	}
	none, err := f.pick(f.ctx)
	require.NoError(t, err)
	require.Empty(t, none)
}

// No record is after the last revision that there can be.
func TestScan_AfterTheLastRevisionThereIsNothing(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	require.NoError(t, f.Read(f.ctx, logName, func(v journal.View) error {
		return v.Scan(math.MaxUint64, math.MaxUint64, func(revision uint64, _ journal.Record) (bool, error) {
			return false, fmt.Errorf("revision %d", revision)
		})
	}))
}

func TestPick_MissingRecordIsDamage(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	f.put("a", "2")
	for _, missing := range []uint64{1, 4, 50} {
		_, err := f.pick(f.ctx, missing)
		var corrupt *journal.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.Equal(t, missing, corrupt.Revision)
		require.Equal(t, "the record is missing", corrupt.What)
	}
	values, err := f.pick(f.ctx, 2, 3, 4)
	require.ErrorIs(t, err, journal.ErrCorrupt)
	require.Equal(t, []string{"1", "2"}, values, "up to the one that is missing")
}

// A record that was damaged while the file is open is not handed out, however it is read.
func TestView_FindsADamagedRecord(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "value 1")
	f.put("a", "value 2")
	require.NoError(t, f.Spoil(logName, map[uint64]bool{3: true}))
	require.NoError(t, f.Read(f.ctx, logName, func(v journal.View) error {
		_, found, err := v.Get(4)
		require.NoError(t, err)
		require.False(t, found)
		r, found, err := v.Get(2)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, "value 1", string(r.Value))

		_, found, err = v.Get(3)
		require.False(t, found)
		calls := 0
		for name, err := range map[string]error{
			"Get": err,
			"Pick": v.Pick(slices.Values([]uint64{2, 3}), func(uint64, journal.Record) error {
				calls++
				return nil
			}),
			"Scan": v.Scan(0, 3, func(uint64, journal.Record) (bool, error) {
				calls++
				return true, nil
			}),
		} {
			var corrupt *journal.CorruptError
			require.ErrorAs(t, err, &corrupt, name)
			require.Equal(t, uint64(3), corrupt.Revision, name)
			require.Equal(t, logName, corrupt.Log, name)
			require.Equal(t, "the record's checksum is wrong", corrupt.What, name)
		}
		require.Equal(t, 2, calls, "of the record before")
		return nil
	}))
}

func TestPick_EndsWithItsContextAndItsCaller(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 40, 30, 10)
	ctx, cancel := context.WithCancelCause(f.ctx)
	enough := errors.New("enough")
	var read int
	err := f.Read(ctx, logName, func(v journal.View) error {
		cancel(enough)
		return v.Pick(func(yield func(uint64) bool) {
			for revision := uint64(2); yield(revision); revision++ {
				read++
			}
		}, func(uint64, journal.Record) error { return nil })
	})
	require.ErrorIs(t, err, enough)
	require.Less(t, read, 300)
	err = f.Read(f.ctx, logName, func(v journal.View) error {
		return v.Pick(slices.Values([]uint64{2, 3}), func(uint64, journal.Record) error { return enough })
	})
	require.ErrorIs(t, err, enough)
}

func TestRead_HonoursTheContext(t *testing.T) {
	f := newFixture(t, journal.Options{})
	for range 3 {
		for range 500 {
			f.stage(journal.Put, "a", "x")
		}
		require.NoError(t, f.commit())
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(f.ctx)
	n := 0
	err := f.Read(ctx, logName, func(v journal.View) error {
		return v.Scan(0, f.last, func(uint64, journal.Record) (bool, error) {
			if n++; n == 100 {
				cancel(cause)
			}
			return true, nil
		})
	})
	require.ErrorIs(t, err, cause)
	require.Less(t, n, 600)
	require.ErrorIs(t, f.Read(ctx, logName, nil), cause)
}

// A view stays as it was while the log goes on.
func TestRead_ShowsOneMoment(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	f.put("a", "2")
	require.NoError(t, f.Read(f.ctx, logName, func(v journal.View) error {
		f.put("a", "3")
		f.raise(4)
		f.trim(journal.Budget{})
		require.Equal(t, uint64(3), v.Bounds().Last)
		r, found, err := v.Get(2)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, "1", string(r.Value))
		_, found, err = v.Get(4)
		require.False(t, found)
		return err
	}))
	require.NoError(t, f.Read(f.ctx, logName, func(v journal.View) error {
		_, found, err := v.Get(2)
		require.False(t, found)
		return err
	}))
}
