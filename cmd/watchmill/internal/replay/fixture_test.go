package replay_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/sim/trace"
)

const (
	shipped      = "../../../../testdata/git-history-small.ndjson.gz"
	shippedFinal = "../../../../testdata/git-history-small.final.tsv"
	shippedLines = 9042
)

// replayed runs a replay that must end without an error.
func replayed(t require.TestingT, opts replay.Options) *replay.Report {
	report, err := replay.Run(bg, opts)
	require.NoError(t, err)
	return report
}

// requireOK fails with the whole report.
func requireOK(t require.TestingT, report *replay.Report) {
	var text bytes.Buffer
	require.NoError(t, report.WriteText(&text))
	require.True(t, report.OK(), text.String())
}

func tsv(t require.TestingT, state trace.State) string {
	var out bytes.Buffer
	require.NoError(t, state.WriteTSV(&out))
	return out.String()
}

func put(key, version string) trace.Change {
	return trace.Change{Op: trace.Put, Key: key, Version: version}
}

func remove(key string) trace.Change { return trace.Change{Op: trace.Delete, Key: key} }

// writeTrace writes changes, a second apart, to a file in dir.
func writeTrace(t require.TestingT, dir string, changes ...trace.Change) string {
	var text bytes.Buffer
	for i, c := range changes {
		line := map[string]any{"t": 1_460_920_094 + i, "op": c.Op.String(), "key": c.Key}
		if c.Op == trace.Put {
			line["version"] = c.Version
		}
		require.NoError(t, json.NewEncoder(&text).Encode(line))
	}
	path := filepath.Join(dir, "trace.ndjson")
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	return path
}

func readFile(t *testing.T, path string) string {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}
