package journal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/usercode"
)

// A bound that an int of 32 bits cannot hold is a bound beyond every file there, and not
// what is left of its lower bits.
func TestMaxBytes_MayBeMoreThanAnInt(t *testing.T) {
	for _, limit := range []int64{
		1<<32 + 1<<15,             // little in 32 bits
		(1<<32 + 1<<18) * 16 / 15, // so after the reserve for discarding history
		1 << 38,                   // a 64th is nothing in 32 bits
	} {
		f := newFixture(t, journal.Options{MaxBytes: limit})
		f.random(newRandom(1), 10, 100, 3000)
		b, err := f.Bounds(logName)
		require.NoError(t, err)
		require.Equal(t, f.last, b.Last)
		require.NoError(t, f.Close())
	}
}

// leastMaxBytes is the least that Options.MaxBytes may be on this system.
var leastMaxBytes = journal.MinMaxBytes(pageSize)

// Where pages are large, each commit writes more, so that the least bound is larger, too.
func TestMaxBytes_IsForSomePages(t *testing.T) {
	for page, least := range map[int]int64{4 << 10: 512 << 10, 16 << 10: 2 << 20, 64 << 10: 8 << 20} {
		require.NoError(t, journal.Options{MaxBytes: least}.Validate(page))
		require.NoError(t, journal.Options{}.Validate(page))
		require.ErrorIs(t, journal.Options{MaxBytes: least - 1}.Validate(page), usercode.ErrConfig)
	}
}

// Deleting a record writes what is beside it, too. So eight times the largest record is left free, also that of
// one from before the file was opened.
func TestMaxBytes_LeavesSpaceToDiscardTheLargestRecord(t *testing.T) {
	const limit, large, small = 8 << 20, 200 << 10, 32 << 10
	for name, restarts := range map[string]bool{"appended": false, "found": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, journal.Options{MaxBytes: limit})
			f.put("large", strings.Repeat("x", large))
			if restarts {
				f.reopen()
			}
			var err error
			for i := 0; err == nil; i++ {
				f.stage(journal.Put, fmt.Sprint(i), strings.Repeat("x", small))
				err = f.commit()
			}
			require.ErrorIs(t, err, journal.ErrFull)
			require.LessOrEqual(t, f.size(), int64(limit-8*large))
			require.Greater(t, f.size(), int64(limit-12*large))
		})
	}
}
