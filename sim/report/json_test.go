package report_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
)

func jsonOf(t *testing.T, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))
	return b.String()
}

func TestJSON_ReadsBackAsItWas(t *testing.T) {
	back, err := report.ReadJSON(strings.NewReader(jsonOf(t, sample())))
	require.NoError(t, err)
	require.Equal(t, sample(), back)
}

func TestJSON_OfANewerProgramIsReadWithoutItsNewFields(t *testing.T) {
	newer := strings.Replace(jsonOf(t, sample()), `"seed": 7,`, `"seed": 7, "mood": {"good": [1]},`, 1)
	back, err := report.ReadJSON(strings.NewReader(newer))
	require.NoError(t, err)
	require.Equal(t, sample(), back)
}

// zeros is a reader without an end, as /dev/zero is.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestJSON_IsRefusedWithTheReason(t *testing.T) {
	valid := jsonOf(t, sample())
	for _, refused := range []struct {
		content string
		err     error
		says    string
	}{
		{"", report.ErrTorn, "it is empty"},
		{" \n", report.ErrTorn, "it is empty"},
		{valid[:1000], report.ErrTorn, "it ends in the middle, after 1000 bytes"},
		{strings.TrimRight(valid, "}\n"), report.ErrTorn, "it ends in the middle"},
		{valid + valid, report.ErrNotReport, "there is more after it"},
		{"<html>", report.ErrNotReport, "invalid character '<'"},
		{"[]", report.ErrNotReport, "cannot unmarshal array"},
		{"{}", report.ErrNotReport, "it has no schema"},
		{`{"schema":3}`, report.ErrNotReport, "cannot unmarshal number"},
		{`{"schema":"other/1"}`, report.ErrNotReport, `its schema is "other/1"`},
		{`{"schema":"watchmill.sim/1"}`, report.ErrNotReport, "it has no metrics"},
		{strings.Replace(valid, `"seed": 7`, `"seed": "7"`, 1), report.ErrNotReport, "seed"},
		{strings.Replace(valid, "sim/1", "sim/2", 1), report.ErrSchema, `"watchmill.sim/2", and this program reads "watchmill.sim/1"`},
	} {
		_, err := report.ReadJSON(strings.NewReader(refused.content))
		require.ErrorIs(t, err, refused.err, refused.says)
		require.ErrorContains(t, err, refused.says)
	}
	_, err := report.ReadJSON(zeros{})
	require.ErrorIs(t, err, report.ErrNotReport)
	require.ErrorContains(t, err, "it has more than 67108864 bytes")
	broken := errors.New("broken disk")
	_, err = report.ReadJSON(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
}
