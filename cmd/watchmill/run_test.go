package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/objectfile"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/sim/load"
)

const shipped = "../../testdata/git-history-small"

// command runs the program and returns what it wrote and its exit status.
func command(ctx context.Context, args ...string) (stdout, stderr string, status int) {
	var out, errs bytes.Buffer
	status = run(ctx, args, &out, &errs)
	return out.String(), errs.String(), status
}

// requireOnlyProgress requires that nothing but lines of progress was written, which there
// are if a run takes long, as on a busy machine.
func requireOnlyProgress(t *testing.T, errs string) {
	t.Helper()
	for line := range strings.Lines(errs) {
		require.Regexp(t, `^([\d,]+ of [\d,]+ changes written|\S+, (preparing|the load is over|[\d,.]+ writes/s))`, line, errs)
	}
}

func TestReplay_OfTheShippedHistory(t *testing.T) {
	state := filepath.Join(t.TempDir(), "out.tsv")
	out, errs, status := command(t.Context(), "replay", "--watchers", "50", "--reconnect", "5", "--state", state, shipped+".ndjson.gz")
	require.Zero(t, status, out+errs)
	requireOnlyProgress(t, errs)
	require.Contains(t, out, "lost       none\n")
	require.Contains(t, out, "equal      50 of 50 watchers have the 605 objects that the backend has\n")
	want, err := os.ReadFile(shipped + ".final.tsv")
	require.NoError(t, err)
	got, err := os.ReadFile(state)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestReplay_IntoAFile(t *testing.T) {
	dir := t.TempDir()
	memory, state, file := filepath.Join(dir, "memory.tsv"), filepath.Join(dir, "out.tsv"), filepath.Join(dir, "state.db")
	history := writeHistory(t, dir, 3000)
	out, errs, status := command(t.Context(), "replay", "--watchers", "1", "--state", memory, history)
	require.Zero(t, status, out+errs)
	args := []string{"replay", "--backend", "bolt:" + file, "--watchers", "10", "--reconnect", "3", "--state", state, history}
	out, errs, status = command(t.Context(), args...)
	require.Zero(t, status, out+errs)
	require.Contains(t, out, "lost       none\n")
	want, err := os.ReadFile(memory)
	require.NoError(t, err)
	require.Greater(t, bytes.Count(want, []byte("\n")), 100)
	got, err := os.ReadFile(state)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))

	_, errs, status = command(t.Context(), args...)
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, ", which has been used before")
	require.Contains(t, errs, "not empty", "what is there would be taken for the history's")
	require.Contains(t, errs, "or add --continue, with its --checkpoints")
}

func TestReplay_TakesEveryFlag(t *testing.T) {
	history := filepath.Join(t.TempDir(), "history")
	require.NoError(t, os.WriteFile(history, []byte(`{"t":1,"op":"put","key":"a/b.go","version":"1"}
rubbish
{"t":2,"op":"put","key":"c.md","version":"1"}
`), 0o600))
	out, errs, status := command(t.Context(), "replay", "--watchers=3", "--speed=1000x", "--policy=conflate", "--slow=1",
		"--reconnect=2", "--select=ext=go", "--window=50", "--seed=7", "--keep-going", history)
	require.Zero(t, status, out+errs)
	require.Contains(t, out, "2 changes, 2 written")
	require.Contains(t, out, "history:2: not a JSON object")
	require.Contains(t, out, "reconnects 6,")
	require.Contains(t, out, "equal      3 of 3 watchers have the 1 objects that \"ext=go\" selects of those in the backend\n", "there is another one")
}

func TestReplay_WrongUsageAndBadInputExitWithTwo(t *testing.T) {
	cut := filepath.Join(t.TempDir(), "cut.gz")
	whole, err := os.ReadFile(shipped + ".ndjson.gz")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cut, whole[:50_000], 0o600))
	missing := filepath.Join(filepath.Dir(cut), "missing", "x.db")
	for mention, args := range map[string][]string{
		`expected one of "replay"`:                         {},
		"unexpected argument":                              {"repaly"},
		`expected "<file>"`:                                {"replay"},
		"unknown flag --wathcers":                          {"replay", "--wathcers=3", "x"},
		"--speed":                                          {"replay", "--speed=fast", "x"},
		"watchmill-etcd":                                   {"replay", "--backend=etcd:127.0.0.1:2379", "x"},
		"no storage of that name":                          {"replay", "--backend=tape:0", "x"},
		"does not say where":                               {"replay", "--backend=bolt:", "x"},
		"memory has no place; give memory, bolt:WHERE\n":   {"replay", "--backend=memory:x", "x"},
		"--backend is " + missing + ", whose directory is": {"replay", "--backend=bolt:" + missing, "x"},
		"--backend is " + filepath.Dir(cut) + ", which is": {"replay", "--backend=bolt:" + filepath.Dir(cut), "x"},
		`invalid policy "drop"`:                            {"replay", "--policy=drop", "x"},
		"there are watch, objectcache, informer, queue\n":  {"replay", "--via=tape", "x"},
		"--watchers is 0":                                  {"replay", "--watchers=0", "x"},
		"--reconnect is 1000001":                           {"replay", "--reconnect=1000001", "x"},
		"--state: is empty":                                {"replay", "--state=", "x"},
		"--checkpoints: is empty":                          {"replay", "--checkpoints=", "x"},
		`unknown field "size"`:                             {"replay", "--select=size=3", "x"},
		"no such file":                                     {"replay", "no such file"},
		"file is truncated":                                {"replay", cut},
	} {
		out, errs, status := command(t.Context(), args...)
		require.Equal(t, exitUsage, status, "%v", args)
		require.Empty(t, out, "%v", args)
		require.Contains(t, errs, mention)
		require.True(t, strings.HasPrefix(errs, "watchmill: "), errs)
	}
}

func TestReplay_NamesTheFlagOfStorageThatCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(file, []byte("notes"), 0o600))
	_, errs, status := command(t.Context(), "replay", "--backend=bolt:"+file, shipped+".ndjson.gz")
	require.Equal(t, exitFailed, status)
	require.Contains(t, errs, "watchmill: --backend is bolt:"+file+": "+file+" does not begin like a file of objects")
}

func TestWrongUsage_NamesTheHelpOfItsCommand(t *testing.T) {
	for help, args := range map[string][]string{
		"watchmill": {"repaly"}, "watchmill replay": {"replay", "--fast", "x"}, "watchmill sim run": {"sim", "run", "--fast"},
	} {
		_, errs, status := command(t.Context(), args...)
		require.Equal(t, exitUsage, status)
		require.True(t, strings.HasSuffix(errs, "\nRun "+help+" --help to see what there is.\n"), errs)
	}
}

func TestHelp_IsNoError(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"replay", "--help"}} {
		out, errs, status := command(t.Context(), args...)
		require.Zero(t, status)
		require.Empty(t, errs)
		require.Contains(t, out, "Usage: watchmill")
	}
}

func TestHelp_ThatCannotBeWrittenExitsWithOne(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"sim", "--help"}, {"replay", "--help"}} {
		var errs bytes.Buffer
		require.Equal(t, exitFailed, run(t.Context(), args, refusing{}, &errs), "the usage was right")
		require.Equal(t, "watchmill: cannot write the help: no space left on device\n", errs.String())
	}
}

func TestVersion_NamesTheProgramAndItsGo(t *testing.T) {
	out, errs, status := command(t.Context(), "--version")
	require.Zero(t, status, errs)
	require.Regexp(t, `^watchmill \S+, `+regexp.QuoteMeta(runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH)+`\n$`, out)
	require.Empty(t, errs)
	var full bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"--version"}, refusing{}, &full))
	require.Equal(t, "watchmill: cannot write the version: no space left on device\n", full.String())
}

func TestHelp_ShowsTheDefaults(t *testing.T) {
	for _, c := range [][]string{{"replay", "--seed=N ", "(100)", "(memory)", "(1)"}, {"serve", "(127.0.0.1:8080)", "(memory)"}} {
		out, _, status := command(t.Context(), c[0], "--help")
		require.Zero(t, status)
		for _, shown := range c[1:] {
			require.Contains(t, out, shown)
		}
	}
}

// A window of one event is passed by while a slow watcher still reads.
func TestReplay_LostWatchersExitWithOne(t *testing.T) {
	out, errs, status := command(t.Context(), "replay", "--watchers=2", "--slow=2", "--window=1", shipped+".ndjson.gz")
	require.Equal(t, exitFailed, status)
	requireOnlyProgress(t, errs) // the report says it
	require.Contains(t, out, "lost       2 of 2 watchers: expired")
	require.Contains(t, out, "equal      0 of 2 watchers")
}

func TestReplay_AStateThatCannotBeWrittenExitsWithOne(t *testing.T) {
	_, errs, status := command(t.Context(), "replay", "--watchers=1", "--state", "/dev/full", shipped+".ndjson.gz")
	require.Equal(t, exitFailed, status)
	require.Contains(t, errs, "no space left on device")
}

// What cannot be written does not cost the state of the replay before.
func TestReplay_LeavesTheStateThatThereIsIfItCannotWriteIt(t *testing.T) {
	dir := t.TempDir()
	history, state := filepath.Join(t.TempDir(), "history"), filepath.Join(dir, "state.tsv")
	require.NoError(t, os.WriteFile(history, []byte(`{"t":1,"op":"put","key":"a","version":"one\ttwo"}`), 0o600))
	require.NoError(t, os.WriteFile(state, []byte("before"), 0o600))
	for _, more := range [][]string{{"--select=dir=."}, {"--backend=bolt:" + filepath.Join(dir, "db")}} {
		_, errs, status := command(t.Context(), append([]string{"replay", "--watchers=1", "--state", state, history}, more...)...)
		require.Equal(t, exitFailed, status)
		require.Contains(t, errs, "it has a tab or a newline")
	}
	content, err := os.ReadFile(state)
	require.NoError(t, err)
	require.Equal(t, "before", string(content))
	require.Equal(t, []string{"state.tsv"}, filetest.Names(t, dir))
}

func TestReplay_InterruptStopsWithAReport(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	state := filepath.Join(t.TempDir(), "out.tsv")
	out, errs, status := command(ctx, "replay", "--state", state, shipped+".ndjson.gz")
	require.Equal(t, exitInterrupted, status)
	require.Empty(t, errs)
	require.Contains(t, out, "stopped    interrupted before the end")
	require.NoFileExists(t, state, "no watcher has seen the final state")
}

// What went wrong besides is told.
func TestComplain_SaysNothingOfAnInterruptAlone(t *testing.T) {
	for err, want := range map[error]string{
		context.Canceled: "",
		fmt.Errorf("%w: %w", objectfile.ErrUnusable, context.Canceled): "",
		errors.Join(context.Canceled, errors.New("the disk is full")):  "watchmill: context canceled\nthe disk is full\n",
	} {
		var errs bytes.Buffer
		require.Equal(t, exitInterrupted, complain(&errs, err))
		require.Equal(t, want, errs.String())
	}
}

func TestSpeed_IsReadFromItsText(t *testing.T) {
	for text, want := range map[string]replay.Speed{"max": 0, "1000x": 1000, "2": 2, "0.5x": 0.5} {
		s := replay.Speed(-1)
		require.NoError(t, s.UnmarshalText([]byte(text)))
		require.Equal(t, want, s)
	}
	for _, text := range []string{"", "x", "0", "-1x", "NaN", "Inf", "1xx", "fast"} {
		var s replay.Speed
		require.ErrorContains(t, s.UnmarshalText([]byte(text)), "is not a speed")
	}
}

func TestProgress_LinesHaveNoControlCharacters(t *testing.T) {
	var out bytes.Buffer
	p := newReplayProgress(&out)
	p.show(load.ReplayProgress{Written: 4521, Changes: 9042, Watchers: 1000, Delivered: 1234567})
	p.show(load.ReplayProgress{Written: 9042, Changes: 9042, Finished: 1000, Watchers: 1000, Delivered: 9042000})
	p.end()
	require.Equal(t, "4,521 of 9,042 changes written, 0 of 1,000 watchers done, 1,234,567 deliveries\n", out.String())
}

func TestProgress_BarShowsBothHalvesAndClears(t *testing.T) {
	var out bytes.Buffer
	p := replayBar(&out)
	p.show(load.ReplayProgress{Written: 1, Changes: 4, Watchers: 3})
	require.Contains(t, out.String(), "writing")
	require.Contains(t, out.String(), "1/4")
	out.Reset()
	p.show(load.ReplayProgress{Written: 4, Changes: 4, Finished: 1, Watchers: 3, Delivered: 1200})
	require.Contains(t, out.String(), "reading, 1,200 deliveries")
	require.Contains(t, out.String(), "1/3")
	p.end()
}
