package replay_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// What follows the colon of a storage that is no file is not taken for the path of one.
func TestFlags_SetEachOption(t *testing.T) {
	dir := t.TempDir()
	state, saved := filepath.Join(dir, "state"), filepath.Join(dir, "saved")
	require.NoError(t, os.WriteFile(saved, nil, 0o600))
	flags := replay.Flags{
		File: "trace", Watchers: 7, Via: load.ViaQueue, Backend: "tape:none/reel", Speed: 3, Policy: engine.Conflate, Slow: 2, Reconnect: 4,
		Select: "ext=go", Window: 50, Seed: 9, State: help.Given(state), KeepGoing: true, Checkpoints: help.Given(saved), Continue: true,
	}
	torn := errors.New("torn")
	var place string
	var shown load.ReplayProgress
	opts, err := flags.Options(replay.Backends{"tape": func(at string, _ store.Schema) (backend.Backend, error) {
		place = at
		return nil, torn
	}}, func(p load.ReplayProgress) { shown = p }, time.Minute)
	require.NoError(t, err)
	_, err = opts.Open(store.Schema{})
	require.ErrorIs(t, err, torn)
	require.Equal(t, "none/reel", place)
	opts.OnProgress(load.ReplayProgress{Written: 1})
	require.Equal(t, 1, shown.Written)
	opts.Open, opts.OnProgress = nil, nil
	require.Equal(t, replay.Options{
		File: "trace", Watchers: 7, Via: load.ViaQueue, Backend: "tape:none/reel", Speed: 3, Policy: engine.Conflate, Slow: 2, Reconnect: 4,
		Select: "ext=go", Window: 50, Seed: 9, WritesState: true, KeepGoing: true, Checkpoints: saved, Continue: true, ProgressEvery: time.Minute,
	}, opts)
}

func TestFlags_RefuseAStorageBelowAFile(t *testing.T) {
	file := writeTrace(t, t.TempDir(), put("a", "1"))
	flags := replay.Flags{File: file, Backend: "bolt:" + filepath.Join(file, "state.db")}
	_, err := flags.Options(replay.Builtin(), nil, 0)
	require.ErrorIs(t, err, replay.ErrOptions)
	require.ErrorContains(t, err, "whose directory is not there")
}

// unwritten is an output that cannot be written.
type unwritten struct{}

var errUnwritten = errors.New("unwritten")

func (unwritten) Write([]byte) (int, error) { return 0, errUnwritten }

// The file of an earlier replay stays.
func TestFinish_WritesNoStateIfNoWatcherHasOne(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	flags := replay.Flags{State: help.Given(state)}
	require.NoError(t, os.WriteFile(state, []byte("before"), 0o600))
	lost := &replay.Report{Replayed: load.Replayed{Watchers: 1, Lost: []load.Loss{{Reason: "expired", Watchers: 1, Err: engine.ErrExpired}}}}
	require.ErrorIs(t, flags.Finish(t.Context(), t.Output(), lost), replay.ErrFailed)
	require.ErrorIs(t, flags.Finish(t.Context(), t.Output(), &replay.Report{Replayed: load.Replayed{Interrupted: true}}), context.Canceled)
	require.Equal(t, "before", readFile(t, state))
	require.Equal(t, []string{"state"}, filetest.Names(t, dir))
}

// The state does not depend on the report, and both errors are told.
func TestFinish_WritesTheStateThoughItCannotReport(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	flags := replay.Flags{State: help.Given(state)}
	report := &replay.Report{Replayed: load.Replayed{Watchers: 1, Equal: 1, State: trace.State{"a": "1"}}}
	require.ErrorIs(t, flags.Finish(t.Context(), unwritten{}, report), errUnwritten)
	require.Equal(t, "a\t1\n", readFile(t, state))

	report.State = trace.State{"a": "\t"}
	err := flags.Finish(t.Context(), unwritten{}, report)
	require.ErrorIs(t, err, errUnwritten)
	require.ErrorIs(t, err, trace.ErrNotTabular)
	require.Equal(t, "a\t1\n", readFile(t, state))
}

// noStorage is what opens the storage of a replay that is refused before.
func noStorage(t *testing.T) func(store.Schema) (backend.Backend, error) {
	return func(store.Schema) (backend.Backend, error) {
		t.Error("the storage was opened")
		return nil, errors.New("no storage")
	}
}

// Only what would be written has to be writable.
func TestRun_RefusesAStateThatCannotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		last    trace.Change
		opts    replay.Options
		refused bool
	}{
		"of an object at the end":       {put("b", "1"), replay.Options{WritesState: true}, true},
		"that is not to be":             {put("b", "1"), replay.Options{}, false},
		"of another selection":          {put("b", "1"), replay.Options{WritesState: true, Select: "ext=go"}, false},
		"of an object that has changed": {put("a.md", "2"), replay.Options{WritesState: true}, false},
		"of an object that is gone":     {remove("a.md"), replay.Options{WritesState: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.opts.File, c.opts.Watchers = writeTrace(t, t.TempDir(), put("a.md", "\t"), c.last), 1
			if c.refused {
				c.opts.Open = noStorage(t)
				_, err := replay.Run(t.Context(), c.opts)
				require.ErrorIs(t, err, trace.ErrNotTabular)
				return
			}
			requireOK(t, replayed(t, c.opts))
		})
	}
}

// The text of the report says so.
func TestRun_ReportsWhatItWasToDo(t *testing.T) {
	dir := t.TempDir()
	opts := durable(dir, replay.Options{File: writeTrace(t, dir, put("a.go", "1"), put("b.md", "1")), Watchers: 1, Select: "ext=go"})
	report := replayed(t, opts)
	requireOK(t, report)
	require.Equal(t, []any{opts.File, 2, "ext=go", opts.Checkpoints}, []any{report.File, report.Changes, report.Select, report.Checkpoints})
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	opts.Continue = true
	report, err := replay.Run(ctx, opts)
	require.NoError(t, err)
	require.Contains(t, text(t, report), "--continue and the same flags")
}

func TestRun_CountsTheBadLinesThatItDoesNotShow(t *testing.T) {
	changes := []trace.Change{put("a", "1")}
	for i := range replay.MaxErrors + 2 {
		changes = append(changes, put(fmt.Sprint("/", i), "1"))
	}
	report := replayed(t, replay.Options{File: writeTrace(t, t.TempDir(), changes...), Watchers: 1, KeepGoing: true})
	requireOK(t, report)
	require.Equal(t, replay.MaxErrors+2, report.BadLines)
	require.Len(t, report.Errors, replay.MaxErrors)
	require.ErrorContains(t, report.Errors[0], ":2: ", "they are the first")
}
