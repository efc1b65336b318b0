package commit_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

func TestQueue_PassesOnThatThereIsNoSpace(t *testing.T) {
	f := newFixture(t, nil)
	full := &journal.FullError{Cause: syscall.ENOSPC}
	f.journal.Add(journaltest.Fault{Err: full})
	require.ErrorIs(t, f.set("a", 0), journal.ErrFull)
	require.Zero(t, f.pods.get("a"))
	require.NoError(t, f.set("a", 0), "as if it had not been tried")
}

func TestQueue_TriesAgainAsLongAsThereMayBeSpace(t *testing.T) {
	left, asked := 0, 0
	f := newFixture(t, func() bool { asked++; left--; return left >= 0 })
	full := journaltest.Fault{Err: &journal.FullError{Cause: syscall.ENOSPC}}
	left = 1
	f.journal.Add(full)
	require.NoError(t, f.set("a", 0))
	require.Equal(t, 1, asked)
	left = 2
	f.journal.Add(full, full)
	require.NoError(t, f.set("a", 1))
	require.Equal(t, 3, asked)
	left = 2
	f.journal.Add(full, full, full)
	require.ErrorIs(t, f.set("a", 2), journal.ErrFull)
	require.Equal(t, 6, asked)
	require.NoError(t, f.set("a", 2))
}

// raise raises the floor of its log.
type raise struct {
	commit.Ticket
	log   *counters
	to    uint64
	shown bool
}

func (r *raise) Log() commit.Log { return r.log }
func (r *raise) Size() int       { return 1 }
func (r *raise) Read()           {}
func (r *raise) Publish()        { r.shown = true }

func (r *raise) Stage(b *journal.Batch) error {
	b.Floors = append(b.Floors, journal.Floor{Log: r.log.name, Revision: r.to})
	return nil
}

// Records may not use all the space, so that history can be discarded: also beside a write for
// which there is none.
func TestQueue_RaisesAFloorThoughThereIsNoSpaceForAWrite(t *testing.T) {
	full := journaltest.Fault{Err: &journal.FullError{Cause: syscall.ENOSPC}}
	failed := journaltest.Fault{Err: &journal.FailedError{Uncertain: true, Cause: syscall.EIO}}
	for name, c := range map[string]struct {
		faults          []journaltest.Fault // of the group, and of what is tried after it
		space           bool                // is made
		write, raising  error
		uncertainRaises bool
	}{
		"there is none for the write":         {faults: []journaltest.Fault{full}, write: journal.ErrFull},
		"some is made for the write":          {faults: []journaltest.Fault{full}, space: true},
		"none is made for the write":          {faults: []journaltest.Fault{full, {}, full}, space: true, write: journal.ErrFull},
		"there is none for the floor, either": {faults: []journaltest.Fault{full, full}, write: journal.ErrFull, raising: journal.ErrFull},
		"some is made for both":               {faults: []journaltest.Fault{full, full}, space: true},
		"the disk fails":                      {faults: []journaltest.Fault{full, failed}, write: journal.ErrFailed, raising: journal.ErrFailed, uncertainRaises: true},
		"the disk fails after it":             {faults: []journaltest.Fault{full, {}, failed}, space: true, write: journal.ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			left := c.space
			f := newFixture(t, func() bool { made := left; left = false; return made })
			r, raised := &raise{log: f.pods, to: 2}, make(chan error, 1)
			var wait func() []error
			require.NoError(t, f.during(journaltest.Fault{}, func() {
				f.journal.Add(c.faults...)
				wait = f.start(f.ctx, "a")
				go func() { raised <- f.Do(f.ctx, r) }()
				require.Eventually(t, func() bool { return f.Len() == 2 }, time.Minute, 50*time.Microsecond)
			}))
			require.ErrorIs(t, wait()[0], c.write)
			err := <-raised
			require.ErrorIs(t, err, c.raising)
			require.Equal(t, c.uncertainRaises, backend.Uncertain(err))
			require.Equal(t, c.raising == nil, r.shown)
			b, err := f.journal.Bounds("pods")
			require.NoError(t, err)
			require.Equal(t, map[bool]uint64{true: 2}[c.raising == nil], b.Floor)
			require.Equal(t, map[bool]int{true: 1}[c.write == nil], f.pods.get("a"))
			if !errors.Is(c.write, journal.ErrFailed) {
				require.NoError(t, f.set("b", 0), "nothing is staged any more")
			}
		})
	}
}

// There may be space for a deletion that there is not for the other writes of its group.
func TestQueue_DeletesThoughThereIsNoSpaceForOtherWrites(t *testing.T) {
	full := journaltest.Fault{Err: &journal.FullError{Cause: syscall.ENOSPC}}
	for _, c := range []struct {
		faults  []journaltest.Fault
		deleted error
		last    uint64
	}{{[]journaltest.Fault{full}, nil, 3}, {[]journaltest.Fault{full, full}, journal.ErrFull, 2}} {
		f := newFixture(t, nil)
		deleted := make(chan error, 1)
		var before, after func() []error
		require.NoError(t, f.during(journaltest.Fault{}, func() {
			f.journal.Add(c.faults...)
			before = f.start(f.ctx, "a")
			go func() { deleted <- f.Do(f.ctx, &set{log: f.pods, key: "gone", deletes: true}) }()
			require.Eventually(t, func() bool { return f.Len() == 2 }, time.Minute, 50*time.Microsecond)
			after = f.start(f.ctx, "b")
		}))
		require.ErrorIs(t, <-deleted, c.deleted)
		require.ErrorIs(t, before()[0], journal.ErrFull)
		require.ErrorIs(t, after()[0], journal.ErrFull)
		b, err := f.journal.Bounds("pods")
		require.NoError(t, err)
		require.Equal(t, c.last, b.Last)
		require.Equal(t, map[bool]int{true: 1}[c.deleted == nil], f.pods.get("gone"))
		require.NoError(t, f.set("c", 0), "nothing is staged any more")
	}
}

func TestQueue_FailsForGoodWhenTheDiskDoes(t *testing.T) {
	f := newFixture(t, nil)
	var wait func() []error
	fault := journaltest.Fault{Err: &journal.FailedError{Uncertain: true, Cause: syscall.EIO}}
	err := f.during(fault, func() { wait = f.start(f.ctx, "a", "b") })
	var failed *journal.FailedError
	require.ErrorAs(t, err, &failed)
	require.True(t, failed.Uncertain)
	for _, err := range append(wait(), f.set("c", 0)) {
		require.ErrorAs(t, err, &failed)
		require.False(t, failed.Uncertain, "it was never tried")
		require.ErrorIs(t, err, syscall.EIO)
	}
	require.Zero(t, f.pods.get("a"))
}

// A write that is refused because of another of its group must not be, if that one
// is not done after all.
func TestQueue_RefusesNothingForWhatIsNotDone(t *testing.T) {
	for _, err := range []error{
		&journal.FullError{Cause: syscall.ENOSPC},
		&journal.FailedError{Uncertain: true, Cause: syscall.EIO},
	} {
		f := newFixture(t, nil)
		var wait func() []error
		require.NoError(t, f.during(journaltest.Fault{}, func() {
			f.journal.Add(journaltest.Fault{Err: err})
			wait = f.start(f.ctx, "a", "a")
		}))
		errs := wait()
		require.ErrorIs(t, errs[0], err)
		require.Error(t, errs[1])
		require.NotErrorIs(t, errs[1], errConflict)
		require.Equal(t, errors.Is(err, journal.ErrFull), errors.Is(errs[1], journal.ErrFull))
		require.False(t, backend.Uncertain(errs[1]), "it was never tried")
	}
}

// A write that is refused before others of its group are staged is refused by what lasts, whether
// the others are done or not.
func TestQueue_RefusesForWhatLastsAlsoIfOthersFail(t *testing.T) {
	f := newFixture(t, nil)
	require.NoError(t, f.set("a", 0))
	full := &journal.FullError{Cause: syscall.ENOSPC}
	var wait func() []error
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		f.journal.Add(journaltest.Fault{Err: full})
		wait = f.start(f.ctx, "a", "b")
	}))
	errs := wait()
	require.ErrorIs(t, errs[0], errConflict)
	require.ErrorIs(t, errs[1], full)
}
