package dispatcher

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBudget_Scenarios runs testdata/budget. Times count from the start of the
// scenario; its commands are:
//
//	new at=…              begins with a new one; without a time, the zero value
//	take at=…             prints what was in the budget
//	give-back <duration>
func TestBudget_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/budget", func(t *testing.T, path string) {
		var b budget
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				b = newBudget(clockArg(t, d, "at"))
			case "take":
				return fmt.Sprintln(b.take(clockArg(t, d, "at")))
			case "give-back":
				unused, err := time.ParseDuration(d.CmdArgs[0].Key)
				require.NoError(t, err)
				b.giveBack(unused)
			default:
				t.Fatalf("unknown command %q", d.Cmd)
			}
			return ""
		})
	})
}

func TestBudget_Table(t *testing.T) {
	for name, c := range map[string]struct {
		passed, unused time.Duration
		want           time.Duration
	}{
		"nothing passed":             {0, 0, 0},
		"one second":                 {time.Second, 0, 50 * time.Millisecond},
		"half a second":              {time.Second / 2, 0, 25 * time.Millisecond},
		"two seconds":                {2 * time.Second, 0, 100 * time.Millisecond},
		"capped":                     {time.Minute, 0, 100 * time.Millisecond},
		"given back":                 {time.Second, 30 * time.Millisecond, 80 * time.Millisecond},
		"given back over the cap":    {2 * time.Second, 30 * time.Millisecond, 100 * time.Millisecond},
		"nothing but given back":     {0, 30 * time.Millisecond, 30 * time.Millisecond},
		"given back far too much":    {0, math.MaxInt64, 100 * time.Millisecond},
		"negative is ignored":        {0, -time.Millisecond, 0},
		"negative takes nothing off": {time.Second, -time.Millisecond, 50 * time.Millisecond},
		"the clock was set back":     {-time.Hour, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBudget(start)
			require.Zero(t, b.take(start), "it starts empty")
			b.giveBack(c.unused)
			require.Equal(t, c.want, b.take(start.Add(c.passed)))
			require.Zero(t, b.take(start.Add(c.passed)), "it was all taken")
		})
	}
}

// However often it is taken, slow watchers never get more than a twentieth of
// the time, and nothing that is due to them is lost to rounding.
func TestBudget_IsATwentiethOfTheTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBudget(start)
		var passed, taken time.Duration
		for range rapid.IntRange(1, 50).Draw(t, "takes") {
			passed += time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "step"))
			taken += b.take(start.Add(passed))
			require.Equal(t, passed/20, taken)
		}
	})
}
