package dispatcher

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// start is when every test begins; times in scenarios count from it.
var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// clockArg reads a time of a scenario, such as at=1m30s; the zero time if the
// argument is not there.
func clockArg(t *testing.T, d *datadriven.TestData, name string) time.Time {
	if !d.HasArg(name) {
		return time.Time{}
	}
	return start.Add(durationArg(t, d, name))
}

func durationArg(t *testing.T, d *datadriven.TestData, name string) time.Duration {
	var text string
	d.ScanArgs(t, name, &text)
	duration, err := time.ParseDuration(text)
	require.NoError(t, err)
	return duration
}
