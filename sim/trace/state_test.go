package trace_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/trace"
)

func TestApply_TellsWhatMadeNoDifference(t *testing.T) {
	put := func(version string) trace.Change { return trace.Change{Op: trace.Put, Key: "a", Version: version} }
	gone := trace.Change{Op: trace.Delete, Key: "a"}
	state := trace.State{}
	require.False(t, state.Apply(gone), "it was never there")
	require.True(t, state.Apply(put("")), "an empty version is one")
	require.False(t, state.Apply(put("")))
	require.True(t, state.Apply(put("v1")))
	require.False(t, state.Apply(put("v1")))
	require.True(t, state.Apply(gone))
	require.False(t, state.Apply(gone))
	require.True(t, state.Apply(put("v1")), "it is there again")
	require.Equal(t, trace.State{"a": "v1"}, state)
}

func TestWriteTSV_SortsByBytes(t *testing.T) {
	var out strings.Builder
	state := trace.State{"b": "1", "a/b": "2", "a": "3", "B": "4", "é": "5", "a.go": "6"}
	require.NoError(t, state.WriteTSV(&out))
	require.Equal(t, "B\t4\na\t3\na.go\t6\na/b\t2\nb\t1\né\t5\n", out.String())
}

func TestWriteTSV_RefusesWhatWouldReadBackDifferently(t *testing.T) {
	for _, state := range []trace.State{{"a\tb": "1"}, {"a\nb": "1"}, {"a": "1\t2"}, {"a": "1\n"}} {
		var out strings.Builder
		require.ErrorIs(t, state.WriteTSV(&out), trace.ErrNotTabular)
		require.Empty(t, out.String())
	}
}

func TestWriteTSV_ReturnsTheWritersError(t *testing.T) {
	r, w := io.Pipe()
	full := errors.New("no space left")
	require.NoError(t, r.CloseWithError(full))
	require.ErrorIs(t, trace.State{"a": "1"}.WriteTSV(w), full)
}

func TestOp_IsReadAsItIsWritten(t *testing.T) {
	for _, op := range []trace.Op{trace.Put, trace.Delete} {
		parsed, err := trace.ParseOp(op.String())
		require.NoError(t, err)
		require.Equal(t, op, parsed)
	}
	require.Equal(t, "Op(0)", trace.Op(0).String())
	require.Equal(t, "Op(9)", trace.Op(9).String())
}
