package killtest_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/judge"
)

// oneLife returns an audit of a process that has ended well once.
func oneLife(t *testing.T) *audit {
	t.Helper()
	a := newAudit(t.TempDir())
	require.NoError(t, a.kill(0, 0, nil, fault{kind: diesWell, consumer: "all"}))
	require.NoError(t, a.life(0, false))
	require.Greater(t, a.events, lastFaultyEvent)
	return a
}

// A consumer that loses an event, has one twice, or saves what it has not handled is
// found, wherever the process is killed.
func TestAudit_FindsWhatConsumersDoWrong(t *testing.T) {
	for faulty, want := range map[string][]judge.Invariant{
		"dies-early/all":       {judge.Resumable},                 // saved with each event
		"dies-early/big":       {judge.Resumable},                 // saved in a file
		"dies-early/conflated": {judge.Resumable},                 // saved after a batch
		"loses/all":            {judge.Reliable, judge.Resumable}, // the latter at the end of a batch
		"loses/shared":         {judge.Resumable},                 // a handler, with batches of one
		"loses/followed":       {judge.Reliable, judge.Resumable},
		"repeats/red":          {judge.Unique},
		"repeats/big":          {judge.Unique},
		"rewinds/all":          {judge.Resumable},
	} {
		t.Run(strings.ReplaceAll(faulty, "/", "_"), func(t *testing.T) {
			a, f := oneLife(t), parseFault(faulty)
			require.NoError(t, a.kill(1, 0, nil, f))
			err := a.life(1, false)
			require.Contains(t, want, judge.Broken(err), "%v", err)
			require.ErrorContains(t, err, `"`+f.consumer+`" in life 1`)
		})
	}
}

// Events whose checkpoint was not saved come again, unless they were saved together: then
// nothing may be left for the next life.
func TestAudit_AllowsAtLeastOnceWhereThatIsPromised(t *testing.T) {
	for consumer, again := range map[string]bool{"big": true, "conflated": true, "all": false} {
		a := oneLife(t)
		require.NoError(t, a.kill(1, 0, nil, fault{kind: diesUnsaved, consumer: consumer}))
		before := a.again
		require.NoError(t, a.life(1, false))
		handled, inherited := a.again-before, a.inherited
		a.finish(t, 2)
		if again {
			require.Positive(t, handled, consumer)
			require.Greater(t, a.inherited, inherited, "%s goes on where it was", consumer)
		}
	}
}

// A file that has lost what was acknowledged is found, and one that has what was not written.
func TestAudit_FindsWhatTheFileDoesWrong(t *testing.T) {
	a := oneLife(t)
	path := filepath.Join(a.dir, "state.db")
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	for len(a.acked) == 0 { // a life may end with what was left of the one before
		require.NoError(t, a.kill(1, 0, nil, fault{kind: diesWell, consumer: "all"}))
	}
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, old, 0o600))
	err = a.life(1, false)
	require.Equal(t, judge.Acknowledged, judge.Broken(err), "%v", err)
	require.ErrorContains(t, err, "lost")

	require.NoError(t, os.WriteFile(path, written, 0o600))
	clear(a.acked)
	clear(a.tried)
	err = a.life(1, false)
	require.Equal(t, judge.Genuine, judge.Broken(err), "%v", err)
	require.ErrorContains(t, err, "was not written")

	err = a.take(io.MultiReader(strings.NewReader("try k 0 x\n"), strings.NewReader("put k 2 x\n")))
	require.Equal(t, judge.Acknowledged, judge.Broken(err), "%v", err)
	require.ErrorContains(t, err, "used twice")
}
