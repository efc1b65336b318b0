package load

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
)

// The last events of a watcher that conflates are those of a difference, or it has none, as
// is likely where files come and go.
func TestReplay_EndsWhenWatchersThatConflateHaveEverything(t *testing.T) {
	for name, change := range map[string]func(i int) trace.Change{
		"one file changes": func(i int) trace.Change {
			return trace.Change{Op: trace.Put, Key: "a", Version: fmt.Sprint(i)}
		},
		"files come and go": func(i int) trace.Change {
			return trace.Change{Op: []trace.Op{trace.Put, trace.Delete}[i%2], Key: fmt.Sprint(i / 2), Version: "1"}
		},
	} {
		for _, via := range []Via{ViaWatch, ViaQueue} {
			t.Run(fmt.Sprint(name, " via ", via), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := History{Watchers: 2, Slow: 1, Via: via, Policy: engine.Conflate, Window: 10, Breaks: 2}
					for i := range 200 {
						h.Changes = append(h.Changes, change(i))
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					rep, err := Replay(ctx, h)
					require.NoError(t, err)
					require.False(t, rep.Interrupted)
					require.True(t, rep.OK(), "%+v", rep)
					require.Equal(t, 2, rep.Equal)
					require.Equal(t, 4, rep.Resumed)
				})
			})
		}
	}
}

func TestFollow_WatchersThatConflateReadEverything(t *testing.T) {
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Engine:  scenario.Engine{Window: 20},
		Objects: scenario.Objects{Count: 20},
		Writers: []scenario.Writer{{Rate: 3000}},
		Watchers: []scenario.Watcher{
			{Count: 3, Policy: scenario.Conflate, Buffer: 10, Consumer: scenario.Follow, Consume: scenario.Consume{Rate: 100}},
		},
	}))
	require.Empty(t, rep.Broken)
	require.Positive(t, rep.Metrics["conflated"])
	require.Zero(t, rep.Metrics["unread"])
}
