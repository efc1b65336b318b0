package replay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// A file of checkpoints as a program could write it that is not this one.
func TestContinue_RefusesCheckpointsWithoutAPosition(t *testing.T) {
	opts := begun(t)
	var file struct {
		Format string          `json:"format"`
		Sum    string          `json:"sum"`
		Body   json.RawMessage `json:"body"`
	}
	require.NoError(t, json.Unmarshal([]byte(readFile(t, opts.Checkpoints)), &file))
	var body struct {
		Settings json.RawMessage `json:"settings"`
		Saved    json.RawMessage `json:"saved"`
	}
	require.NoError(t, json.Unmarshal(file.Body, &body))
	for mention, spoil := range map[string]func(){
		"it has no saved position": func() { body.Saved = json.RawMessage("null") },
		"cannot unmarshal":         func() { body.Settings = json.RawMessage("[]") },
	} {
		before := body
		spoil()
		var err error
		file.Body, err = json.Marshal(body)
		require.NoError(t, err)
		body = before
		file.Sum = fmt.Sprintf("%08x", crc32.Checksum(file.Body, crc32.MakeTable(crc32.Castagnoli)))
		text, err := json.Marshal(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(opts.Checkpoints, append(text, '\n'), 0o600))
		_, err = replay.Run(t.Context(), opts)
		require.ErrorIs(t, err, replay.ErrOptions)
		require.ErrorContains(t, err, opts.Checkpoints+" is damaged: ")
		require.ErrorContains(t, err, mention)
	}
}

// A large file is not read to its end, and the error does not call it torn.
func TestContinue_RefusesAFileThatIsTooLargeForItsWatchers(t *testing.T) {
	opts := begun(t)
	require.NoError(t, os.WriteFile(opts.Checkpoints, make([]byte, 1<<20), 0o600))
	_, err := replay.Run(t.Context(), opts)
	require.ErrorIs(t, err, replay.ErrOptions)
	require.ErrorContains(t, err, "has more bytes than the checkpoints of 2 watchers")
}

// A file of a later program is not damaged.
func TestContinue_RefusesCheckpointsOfAnotherFormat(t *testing.T) {
	opts := begun(t)
	require.NoError(t, os.WriteFile(opts.Checkpoints, []byte(`{"format":"watchmill replay checkpoints 2"}`), 0o600))
	_, err := replay.Run(t.Context(), opts)
	require.ErrorIs(t, err, replay.ErrOptions)
	require.ErrorContains(t, err, `its format is "watchmill replay checkpoints 2" and not`)
}

// kept is a part of a file of checkpoints.
type kept struct {
	Body struct {
		Saved struct {
			Watchers []struct {
				Delivered, Resumed int
			}
		}
	}
}

// keptAt returns the checkpoints that a replay has kept after a time, in which it makes a change each second.
func keptAt(t *testing.T, at time.Duration, opts replay.Options) (saved kept) {
	dir := t.TempDir()
	var changes []trace.Change
	for i := range 20 {
		changes = append(changes, put("a", fmt.Sprint(i)))
	}
	opts.File, opts.Speed = writeTrace(t, dir, changes...), 1
	opts = durable(dir, opts)
	synctest.Test(t, func(t *testing.T) {
		var text []byte
		opts.ProgressEvery = at
		opts.OnProgress = func(load.ReplayProgress) {
			if text == nil {
				text, _ = os.ReadFile(opts.Checkpoints)
			}
		}
		requireOK(t, replayed(t, opts))
		require.NoError(t, json.Unmarshal(text, &saved))
	})
	return saved
}

// A process that is killed may lose what it has received since its last checkpoint.
func TestCheckpoints_AreKeptAsOftenAsTheyAreToBe(t *testing.T) {
	for every, want := range map[time.Duration]int{time.Hour: 0, 4500 * time.Millisecond: 5, 0: 6} {
		saved := keptAt(t, 5500*time.Millisecond, replay.Options{Watchers: 1, CheckpointEvery: every})
		require.Equal(t, want, saved.Body.Saved.Watchers[0].Delivered, every)
	}
}

func TestSeed_DeterminesWhereWatchersDisconnect(t *testing.T) {
	disconnected := func(seed uint64) (times []int) {
		saved := keptAt(t, 9500*time.Millisecond, replay.Options{Watchers: 40, Reconnect: 1, Seed: seed})
		for _, w := range saved.Body.Saved.Watchers {
			times = append(times, w.Resumed)
		}
		return times
	}
	one := disconnected(1)
	require.Len(t, one, 40)
	require.Equal(t, one, disconnected(1))
	require.NotEqual(t, one, disconnected(2))
}

// A file that cannot be used is closed, so that the user can look into it at once.
func TestRun_ClosesAFileWithOtherObjects(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.db")
	file, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	others := engine.Config[int]{Key: func(int) string { return "a" }}
	numbers, err := bolt.New(file, "replay", bolt.Config{Schema: others.Schema()})
	require.NoError(t, err)
	e, err := engine.New(engine.Config[int]{Key: others.Key, Backend: numbers})
	require.NoError(t, err)
	_, err = e.Create(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, errors.Join(e.Close(), numbers.Close(), file.Close()))

	opts := durable(dir, replay.Options{File: writeTrace(t, dir, put("a", "1")), Watchers: 1})
	_, err = replay.Run(t.Context(), opts)
	var undecodable *backend.UndecodableError
	require.ErrorAs(t, err, &undecodable)
	file, err = bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	require.NoError(t, file.Close())
}
