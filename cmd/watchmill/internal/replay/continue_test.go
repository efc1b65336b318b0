package replay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// durable returns the options of a replay into a file in dir that can be continued.
func durable(dir string, opts replay.Options) replay.Options {
	opts.Open = func(schema store.Schema) (backend.Backend, error) {
		return replay.Builtin()["bolt"](filepath.Join(dir, "state.db"), schema)
	}
	opts.Checkpoints = filepath.Join(dir, "checkpoints")
	return opts
}

// interrupted runs a replay that is interrupted after a number of writes to its storage,
// when it also calls also. It reports whether the replay came to its end first.
func interrupted(t *testing.T, opts replay.Options, writes int, also func()) (*replay.Report, bool) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	open := opts.Open
	opts.Open = func(schema store.Schema) (backend.Backend, error) {
		b, err := open(schema)
		if err != nil {
			return nil, err
		}
		f := faulty.New(b, faulty.Options{ShareState: true})
		f.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpPut, faulty.OpRemove}, Skip: writes - 1, Times: 1, Do: faulty.After(func(context.Context, *faulty.Call) {
			also()
			interrupt()
		})})
		return f, nil
	}
	report, err := replay.Run(ctx, opts)
	require.NoError(t, err)
	return report, !report.Interrupted
}

// changesOf returns random changes of few files, some of which make no difference.
func changesOf(random *rand.Rand, n int) (changes []trace.Change) {
	for range n {
		key := fmt.Sprintf("%s/f%d.%s", []string{"a", "b"}[random.IntN(2)], random.IntN(6), []string{"go", "md"}[random.IntN(2)])
		if random.IntN(4) == 0 {
			changes = append(changes, remove(key))
		} else {
			changes = append(changes, put(key, fmt.Sprint(random.IntN(3))))
		}
	}
	return changes
}

// requireSameEnd compares what a replay that was interrupted came to with what one
// that was not did.
func requireSameEnd(t *testing.T, want, got *replay.Report) {
	requireOK(t, got)
	require.Equal(t, tsv(t, want.State), tsv(t, got.State))
	require.Equal(t, want.Written, got.Written)
	require.Equal(t, want.NoOps, got.NoOps)
	require.Equal(t, want.Delivered, got.Delivered)
	require.Equal(t, want.Resumed, got.Resumed)
	require.Equal(t, want.Relisted, got.Relisted)
	require.Equal(t, want.Objects, got.Objects)
	require.Equal(t, want.Equal, got.Equal)
}

// Each seed is a history, its watchers, and the points at which their replay is
// interrupted. Sometimes the checkpoints are then those of an earlier time, as after a
// crash between two of them.
func TestContinue_ComesToTheEndOfAReplayWithoutInterruption(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			dir := t.TempDir()
			opts := replay.Options{
				File: writeTrace(t, dir, changesOf(random, 200)...), Watchers: 1 + random.IntN(12), Reconnect: random.IntN(4), Seed: seed,
				Via:    []load.Via{load.ViaWatch, load.ViaQueue}[random.IntN(2)],
				Select: []string{"", "dir=a", "ext!=go"}[random.IntN(3)],
			}
			opts.Slow = random.IntN(1 + opts.Watchers/2)
			want := replayed(t, opts)
			requireOK(t, want)

			opts = durable(dir, opts)
			opts.CheckpointEvery = 5 * time.Millisecond
			var first []byte
			written, rounds := 0, 0
			for done := false; !done; rounds++ {
				var report *replay.Report
				var stale []byte
				at := 1 + random.IntN(80)
				report, done = interrupted(t, opts, at, func() { stale, _ = os.ReadFile(opts.Checkpoints) })
				require.Equal(t, written, report.Continued, "it goes on after the last change that was made")
				require.GreaterOrEqual(t, report.Written, written)
				written = report.Written
				if done {
					requireSameEnd(t, want, report)
				} else if first == nil {
					first = stale
				} else if random.IntN(2) == 0 {
					require.NoError(t, os.WriteFile(opts.Checkpoints, stale, 0o600))
				}
				opts.Continue = true
			}
			require.Greater(t, rounds, 1)
			requireSameEnd(t, want, replayed(t, opts)) // which has nothing left to do
			require.NoError(t, os.WriteFile(opts.Checkpoints, first, 0o600))
			again := replayed(t, opts) // in which only the watchers have something to do
			requireSameEnd(t, want, again)
			require.Zero(t, again.Latency.Events, "of what another process wrote, there is no latency")
		})
	}
}

// Without checkpoints and storage there is nothing to go on with, as when the process
// was killed at once.
func TestContinue_BeginsIfThereIsNothing(t *testing.T) {
	dir := t.TempDir()
	opts := durable(dir, replay.Options{File: writeTrace(t, dir, put("a", "1"), put("b", "1")), Watchers: 2, Seed: 1})
	opts.Continue = true
	report := replayed(t, opts)
	requireOK(t, report)
	require.Zero(t, report.Continued)
	require.Equal(t, 2, report.Written)
	require.NoFileExists(t, opts.Checkpoints+".new")
}

// begun returns the options of a replay of a few changes that was interrupted after
// the third.
func begun(t *testing.T, more ...trace.Change) replay.Options {
	dir := t.TempDir()
	changes := append([]trace.Change{put("a", "1"), put("b", "1"), put("a", "2"), remove("b"), put("c", "1")}, more...)
	opts := durable(dir, replay.Options{File: writeTrace(t, dir, changes...), Watchers: 2, Seed: 1})
	_, done := interrupted(t, opts, 3, func() {})
	require.False(t, done)
	opts.Continue = true
	return opts
}

func TestContinue_RefusesWhatItCannotGoOnWith(t *testing.T) {
	for name, c := range map[string]struct {
		spoil        func(t *testing.T, o *replay.Options)
		option, says string
	}{
		"no name of checkpoints": {func(_ *testing.T, o *replay.Options) { o.Checkpoints = "" }, "--continue", "--checkpoints"},
		"storage in memory":      {func(_ *testing.T, o *replay.Options) { o.Open = nil }, "--checkpoints", "bolt:FILE"},
		"by informers":           {func(_ *testing.T, o *replay.Options) { o.Via = load.ViaInformer }, "--checkpoints", "no revision to resume from"},
		"negative period":        {func(_ *testing.T, o *replay.Options) { o.CheckpointEvery = -1 }, "CheckpointEvery", "negative"},
		"storage with other revisions": {func(_ *testing.T, o *replay.Options) {
			open := o.Open
			o.Open = func(schema store.Schema) (backend.Backend, error) {
				b, err := open(schema)
				return faulty.New(b, faulty.Options{Sparse: true}), err
			}
		}, "--continue", "changes of others"},
		"checkpoints are there, and it is to begin": {func(_ *testing.T, o *replay.Options) { o.Continue = false }, "--checkpoints", "exists already"},
		"checkpoints are missing": {func(t *testing.T, o *replay.Options) {
			require.NoError(t, os.Remove(o.Checkpoints))
		}, "--checkpoints", "is missing, and the storage is not new"},
		"checkpoints of another file": {func(t *testing.T, o *replay.Options) {
			o.Checkpoints = begun(t).Checkpoints
		}, "--checkpoints", "is of other storage"},
		"storage is another file": {func(t *testing.T, o *replay.Options) {
			o.Open = durable(t.TempDir(), *o).Open
		}, "--checkpoints", "is of other storage"},
		"another number of watchers":   {func(_ *testing.T, o *replay.Options) { o.Watchers = 3 }, "--watchers", "was begun with 2"},
		"other options":                {func(_ *testing.T, o *replay.Options) { o.Policy = engine.Conflate }, "--policy", `was begun with "park"`},
		"another selector":             {func(_ *testing.T, o *replay.Options) { o.Select = "ext=go" }, "--select", `is "ext=go"`},
		"another way":                  {func(_ *testing.T, o *replay.Options) { o.Via = load.ViaQueue }, "--via", `is "queue", but the replay that saved`},
		"other watchers that are slow": {func(_ *testing.T, o *replay.Options) { o.Slow = 1 }, "--slow", "was begun with 0"},
		"more reconnects":              {func(_ *testing.T, o *replay.Options) { o.Reconnect = 1 }, "--reconnect", "was begun with 0"},
		"another seed":                 {func(_ *testing.T, o *replay.Options) { o.Seed = 2 }, "--seed", "was begun with 1"},
		"another trace": {func(t *testing.T, o *replay.Options) {
			o.File = writeTrace(t, t.TempDir(), put("a", "1"), put("b", "1"), put("a", "9"), put("c", "1"))
		}, "--continue", `"a" is 2`},
		"another trace of the same files": {func(t *testing.T, o *replay.Options) {
			o.File = writeTrace(t, t.TempDir(), put("b", "1"), put("a", "1"), put("a", "2"), put("c", "1"))
		}, "--continue", `"b" is 1`},
		"a shorter trace": {func(t *testing.T, o *replay.Options) {
			o.File = writeTrace(t, t.TempDir(), put("a", "1"), put("b", "1"))
		}, "--continue", "the storage has 3 changes, and the history has 2"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := begun(t)
			c.spoil(t, &opts)
			before, _ := os.ReadFile(opts.Checkpoints)
			_, err := replay.Run(t.Context(), opts)
			var wrong *replay.OptionError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, c.option, wrong.Option)
			require.ErrorContains(t, err, c.says)
			after, _ := os.ReadFile(opts.Checkpoints)
			require.Equal(t, string(before), string(after), "what was saved is as it was")
		})
	}
}

// Errors about the storage name it, and a file that is missing is not made.
func TestContinue_NamesTheStorage(t *testing.T) {
	dir := t.TempDir()
	flags := replay.Flags{
		File: writeTrace(t, dir, put("a", "1"), put("b", "1"), put("c", "1")), Watchers: 2,
		Backend: "bolt:" + filepath.Join(dir, "state.db"), Checkpoints: help.Given(filepath.Join(dir, "checkpoints")),
	}
	run := func(f replay.Flags) error {
		opts, err := f.Options(replay.Builtin(), nil, 0)
		if err == nil {
			_, err = replay.Run(t.Context(), opts)
		}
		return err
	}
	require.NoError(t, run(flags))
	refused := func(f replay.Flags, mention string) {
		t.Helper()
		err := run(f)
		require.ErrorIs(t, err, replay.ErrOptions)
		require.ErrorContains(t, err, f.Backend[len("bolt:"):])
		require.ErrorContains(t, err, mention)
	}
	used := flags
	used.Checkpoints = ""
	refused(used, "which has been used before")

	flags.Continue = true
	missing := flags
	missing.Backend = "bolt:" + filepath.Join(dir, "missing.db")
	refused(missing, "which is not there, but the replay that saved "+string(flags.Checkpoints))
	require.NoFileExists(t, filepath.Join(dir, "missing.db"))
	missing.Continue = false
	require.ErrorContains(t, run(missing), string(flags.Checkpoints)+" exists already", "it would begin anew")
	require.NoFileExists(t, filepath.Join(dir, "missing.db"))

	other := flags
	other.Backend, other.Checkpoints = "bolt:"+filepath.Join(dir, "other.db"), help.Given(filepath.Join(dir, "others"))
	require.NoError(t, run(other))
	other.Checkpoints = flags.Checkpoints
	refused(other, "is of other storage than bolt:")

	unsaved := flags
	unsaved.Checkpoints = help.Given(filepath.Join(dir, "none"))
	refused(unsaved, "is not new")

	shorter := flags
	shorter.File = writeTrace(t, t.TempDir(), put("a", "1"))
	refused(shorter, "the storage has 3 changes")
}

// A watcher that is behind what storage has kept lists again, as after any disconnect.
func TestContinue_ListsAgainWhatStorageHasGivenUp(t *testing.T) {
	for _, via := range []load.Via{load.ViaWatch, load.ViaQueue} {
		dir := t.TempDir()
		opts := durable(dir, replay.Options{File: writeTrace(t, dir, changesOf(rand.New(rand.NewPCG(1, 2)), 100)...), Watchers: 3, Via: via, Seed: 1})
		var first []byte
		_, done := interrupted(t, opts, 20, func() { first, _ = os.ReadFile(opts.Checkpoints) })
		require.False(t, done)
		require.NoError(t, os.WriteFile(opts.Checkpoints, first, 0o600)) // in which all are at the start
		opts.Continue = true
		open := opts.Open
		opts.Open = func(schema store.Schema) (backend.Backend, error) {
			b, err := open(schema)
			if err != nil {
				return nil, err
			}
			newest, err := b.Revision(t.Context())
			require.NoError(t, err)
			return b, b.Compact(t.Context(), newest)
		}
		report := replayed(t, opts)
		requireOK(t, report)
		require.Equal(t, 3, report.Relisted)
	}
}

// An older copy in the place of the storage has less than the watchers have seen.
func TestContinue_RefusesAnOlderCopyOfTheStorage(t *testing.T) {
	opts := begun(t, put("d", "1"))
	file := filepath.Join(filepath.Dir(opts.Checkpoints), "state.db")
	older, err := os.ReadFile(file)
	require.NoError(t, err)
	requireOK(t, replayed(t, opts))
	require.NoError(t, os.WriteFile(file, older, 0o600))
	_, err = replay.Run(t.Context(), opts)
	require.ErrorIs(t, err, replay.ErrOptions)
	require.ErrorContains(t, err, "an older copy of it")
}

// A file that is cut off anywhere, changed in one byte, or something else, is an error
// that names it.
func TestContinue_RefusesDamagedCheckpoints(t *testing.T) {
	opts := begun(t)
	whole, err := os.ReadFile(opts.Checkpoints)
	require.NoError(t, err)
	refused := func(content []byte, what string) {
		require.NoError(t, os.WriteFile(opts.Checkpoints, content, 0o600))
		_, err := replay.Run(t.Context(), opts)
		require.ErrorIs(t, err, replay.ErrOptions, what)
		require.ErrorContains(t, err, opts.Checkpoints, what)
	}
	for n := range whole {
		bits := []int{n % 8}
		if n < 100 { // the parts around the checksum's
			refused(whole[:n], fmt.Sprint("cut off at ", n))
			bits = append(bits, 5) // the case of a letter
		}
		for _, bit := range bits {
			damaged := slices.Clone(whole)
			damaged[n] ^= 1 << bit
			refused(damaged, fmt.Sprintf("bit %d of byte %d", bit, n))
		}
	}
	for n := 100; n < len(whole); n += 20 {
		refused(whole[:n], fmt.Sprint("cut off at ", n))
	}
	refused(whole[:len(whole)-1], "without its newline")
	refused([]byte(`{"format":"else"}`), "another format")
	refused(make([]byte, 1<<20), "far too large")

	require.NoError(t, os.WriteFile(opts.Checkpoints, whole, 0o600))
	requireOK(t, replayed(t, opts))
}

// A replay whose checkpoints cannot be kept ends, before anything is written.
func TestContinue_EndsIfCheckpointsCannotBeSaved(t *testing.T) {
	dir := t.TempDir()
	opts := durable(dir, replay.Options{File: writeTrace(t, dir, put("a", "1")), Watchers: 1})
	opts.Checkpoints = filepath.Join(dir, "no", "such", "place")
	_, err := replay.Run(t.Context(), opts)
	require.ErrorIs(t, err, load.ErrNotSaved)
	require.ErrorIs(t, err, os.ErrNotExist)
	opts.Checkpoints = filepath.Join(dir, "checkpoints")
	report := replayed(t, opts)
	requireOK(t, report)
	require.Equal(t, 1, report.Written)

	late := durable(t.TempDir(), opts)
	open := late.Open
	late.Open = func(schema store.Schema) (backend.Backend, error) {
		require.NoError(t, os.Mkdir(late.Checkpoints, 0o700)) // which no file replaces
		return open(schema)
	}
	_, err = replay.Run(t.Context(), late)
	require.ErrorIs(t, err, load.ErrNotSaved)
}

// The file by way of which checkpoints are replaced may be of the user; one that a replay
// has left there is replaced.
func TestContinue_ReplacesNoFileButItsOwn(t *testing.T) {
	for content, isOwn := range map[string]bool{"": true, `{"for`: true, `{"format":"watchmill replay checkpoints 1","sum`: true, "mine": false, `{"format":"else"}`: false} {
		dir := t.TempDir()
		opts := durable(dir, replay.Options{File: writeTrace(t, dir, put("a", "1")), Watchers: 1})
		beside := opts.Checkpoints + ".new"
		require.NoError(t, os.WriteFile(beside, []byte(content), 0o600))
		report, err := replay.Run(t.Context(), opts)
		if isOwn {
			require.NoError(t, err, content)
			requireOK(t, report)
			continue
		}
		require.ErrorIs(t, err, replay.ErrOptions, content)
		require.ErrorContains(t, err, beside+", which exists")
		left, err := os.ReadFile(beside)
		require.NoError(t, err)
		require.Equal(t, content, string(left))
	}
}

// A selector that a replay took may be as long as the checkpoints of many watchers.
func TestContinue_TakesTheSelectorThatItHasSaved(t *testing.T) {
	dir := t.TempDir()
	opts := durable(dir, replay.Options{File: writeTrace(t, dir, put("a/b.go", "1")), Watchers: 1, Select: "dir=a,ext!=" + strings.Repeat("<", 5000)})
	requireOK(t, replayed(t, opts))
	opts.Continue = true
	requireOK(t, replayed(t, opts))
}

func TestContinue_TakesThePositionsOfManyWatchers(t *testing.T) {
	dir := t.TempDir()
	opts := durable(dir, replay.Options{File: writeTrace(t, dir, put("a", "1")), Watchers: 500})
	requireOK(t, replayed(t, opts))
	opts.Continue = true
	requireOK(t, replayed(t, opts))
}

// Checkpoints go where a link leads, whether there is a file yet or not.
func TestContinue_ReplacesTheFileOfALink(t *testing.T) {
	dir := t.TempDir()
	opts := durable(dir, replay.Options{File: writeTrace(t, dir, put("a", "1")), Watchers: 1})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "far"), 0o700))
	require.NoError(t, os.Symlink("far/saved", opts.Checkpoints))
	requireOK(t, replayed(t, opts))
	opts.Continue = true
	requireOK(t, replayed(t, opts))
	require.Equal(t, []string{"saved"}, filetest.Names(t, filepath.Join(dir, "far")))
	to, err := os.Readlink(opts.Checkpoints)
	require.NoError(t, err)
	require.Equal(t, "far/saved", to)
}

func TestContinue_NoFileIsUsedForTwoThings(t *testing.T) {
	dir := t.TempDir()
	file := writeTrace(t, dir, put("a", "1"))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(file, link))
	for mention, flags := range map[string]replay.Flags{
		"the trace":           {File: file, Backend: "bolt:s.db", Checkpoints: help.Given(link)},
		"the storage":         {File: file, Backend: "bolt:" + dir + "/s.db", Checkpoints: help.Given(dir + "/./s.db")},
		"the file of --state": {File: file, Backend: "bolt:s.db", State: "out", Checkpoints: "out"},
	} {
		_, err := flags.Options(replay.Builtin(), nil, 0)
		require.ErrorIs(t, err, replay.ErrOptions)
		require.ErrorContains(t, err, "which is "+mention)
	}
	for mention, flags := range map[string]replay.Flags{
		"which is the trace":     {File: file, Backend: "memory", State: help.Given(link)},
		"which is the storage":   {File: file, Backend: "bolt:" + dir + "/s.db", State: help.Given(dir + "/s.db")},
		"which is a directory":   {File: file, Backend: "memory", State: help.Given(dir)},
		"directory is not there": {File: file, Backend: "memory", State: help.Given(filepath.Join(dir, "none", "state"))},
	} {
		_, err := flags.Options(replay.Builtin(), nil, 0)
		require.ErrorIs(t, err, replay.ErrOptions)
		require.ErrorContains(t, err, "--state is ")
		require.ErrorContains(t, err, mention)
	}
	for mention, path := range map[string]string{"which is a directory": dir, "directory is not there": filepath.Join(dir, "none", "checkpoints")} {
		flags := replay.Flags{File: file, Backend: "bolt:s.db", Checkpoints: help.Given(path)}
		_, err := flags.Options(replay.Builtin(), nil, 0)
		require.ErrorIs(t, err, replay.ErrOptions)
		require.ErrorContains(t, err, "--checkpoints is "+path, "before anything is written to the storage")
		require.ErrorContains(t, err, mention)
	}
	tooLong := filepath.Join(dir, strings.Repeat("x", 300))
	for flag, flags := range map[string]replay.Flags{
		"--state is ":       {File: file, Backend: "memory", State: help.Given(tooLong)},
		"--checkpoints is ": {File: file, Backend: "bolt:s.db", Checkpoints: help.Given(tooLong)},
	} {
		_, err := flags.Options(replay.Builtin(), nil, 0)
		require.ErrorIs(t, err, replay.ErrOptions)
		require.ErrorContains(t, err, flag+tooLong+", which cannot be written")
	}
	good := replay.Flags{File: file, Backend: "bolt:s.db", State: "out", Checkpoints: "checkpoints"}
	_, err := good.Options(replay.Builtin(), nil, 0)
	require.NoError(t, err)
}
