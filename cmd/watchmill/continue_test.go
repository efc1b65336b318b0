package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// killRounds is how many replays are killed: WATCHMILL_KILL_ROUNDS for the long form.
func killRounds(t *testing.T) int {
	text := os.Getenv("WATCHMILL_KILL_ROUNDS")
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// process runs the command in a process of its own, which is killed after a time
// unless that is zero.
func process(t *testing.T, killAfter time.Duration, args ...string) (out string, killed bool) {
	child := exec.CommandContext(t.Context(), os.Args[0], args...)
	child.Env = append(os.Environ(), asCommand+"=1")
	var both bytes.Buffer
	child.Stdout, child.Stderr = &both, &both
	require.NoError(t, child.Start())
	if killAfter > 0 {
		defer time.AfterFunc(killAfter, func() { _ = child.Process.Kill() }).Stop()
	}
	err := child.Wait()
	if err != nil {
		require.Equal(t, -1, child.ProcessState.ExitCode(), "it ends well or is killed: %v\n%s", err, both.String())
	}
	return both.String(), err != nil
}

// writeHistory makes a history of a number of changes, a second apart.
func writeHistory(t *testing.T, dir string, changes int) string {
	random := rand.New(rand.NewPCG(1, 1))
	var text bytes.Buffer
	for i := range changes {
		line := map[string]any{"t": i, "op": "put", "key": fmt.Sprintf("d%d/%d.go", random.IntN(5), random.IntN(40)), "version": fmt.Sprint(random.IntN(3))}
		if random.IntN(4) == 0 {
			line["op"] = "delete"
		}
		require.NoError(t, json.NewEncoder(&text).Encode(line))
	}
	path := filepath.Join(dir, "history.ndjson")
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	return path
}

// newestIn returns the newest revision of the objects in a file, zero if it has none.
func newestIn(t *testing.T, path string) engine.Revision {
	f, err := bolt.Open(path, bolt.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	info, err := f.Info()
	require.NoError(t, err)
	return info.Types["replay"].Revision
}

// reproducible matches what a report says that does not depend on time.
var reproducible = regexp.MustCompile(`(?m)^(trace|reconnects|lost|misfits|equal) .*$|\([0-9,]+ in all\)$`)

// A replay that is killed at random, any number of times, and gone on with comes to the
// end of one that is not, byte for byte.
func TestReplay_GoesOnAfterBeingKilled(t *testing.T) {
	dir := t.TempDir()
	rounds := killRounds(t)
	history, state := writeHistory(t, dir, 500*rounds), filepath.Join(dir, "state.tsv")
	args := []string{"replay", "--watchers=20", "--slow=2", "--reconnect=3", "--state", state, history}
	whole, killed := process(t, 0, args...)
	require.False(t, killed)
	want, err := os.ReadFile(state)
	require.NoError(t, err)
	require.NoError(t, os.Remove(state))

	file := filepath.Join(dir, "state.db")
	args = append(args, "--speed=1500x", "--continue", "--backend=bolt:"+file, "--checkpoints", filepath.Join(dir, "checkpoints"))
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	var kills, early int
	for newest, start := engine.Revision(0), time.Duration(0); kills < rounds; {
		_, killed := process(t, start+time.Duration(random.Int64N(int64(400*time.Millisecond))), args...)
		if !killed {
			break // what was left took less than that
		}
		if now := newestIn(t, file); now > newest {
			newest = now
			kills++
			continue
		}
		start += 50 * time.Millisecond // it was not yet running
		early++
	}
	require.Positive(t, kills)
	out, killed := process(t, 0, args...)
	require.False(t, killed)
	got, err := os.ReadFile(state)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	require.Equal(t, reproducible.FindAllString(whole, -1), reproducible.FindAllString(out, -1), out)
	require.Len(t, reproducible.FindAllString(out, -1), 5)
	require.Contains(t, out, "continued  after")
	t.Logf("killed %d times while it wrote, and %d before that:\n%s", kills, early, out)
}
