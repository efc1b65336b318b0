package replay_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/sim/load"
)

func text(t *testing.T, r *replay.Report) string {
	var out strings.Builder
	require.NoError(t, r.WriteText(&out))
	return out.String()
}

func TestText_OfAGoodRun(t *testing.T) {
	require.Equal(t, `trace      h.ndjson: 9,042 changes, 9,042 written, 3 of them made no difference
took       2s: 4,521 events/s, 4,521,000 deliveries/s (9,042,000 in all)
latency    p50 1ms, p99 2ms, max 3ms from commit to consumer (9,000,000 live deliveries)
reconnects 5,000, 2 of them listed again
lost       none
equal      1,000 of 1,000 watchers have the 605 objects that the backend has
`, text(t, &replay.Report{File: "h.ndjson", Changes: 9042, Replayed: load.Replayed{
		Written: 9042, NoOps: 3, Took: 2 * time.Second, Delivered: 9_042_000,
		Latency:  load.Latency{Events: 9_000_000, P50: time.Millisecond, P99: 2 * time.Millisecond, Max: 3 * time.Millisecond},
		Watchers: 1000, Resumed: 5000, Relisted: 2, Objects: 605, Equal: 1000,
	}}))
}

func TestText_SaysAllThatWentWrong(t *testing.T) {
	require.Equal(t, `trace      h.ndjson: 9 changes, 9 written, 0 of them made no difference
left out   12 bad lines
  h.ndjson:3: bad
  and 11 more
took       0s: 0 events/s, 0 deliveries/s (20 in all)
latency    not measured: no event reached a watcher at full speed as it happened
reconnects 0, 0 of them listed again
conflated  7 of the deliveries stand for several events
lost       1 of 3 watchers: expired (too old)
misfits    4 events did not fit the state of the watcher that got them
equal      1 of 3 watchers have the 5 objects that the backend has
  watcher 2 and the backend: "a" is not there and 1 at revision 2
`, text(t, &replay.Report{
		File: "h.ndjson", Changes: 9, BadLines: 12, Errors: []error{errors.New("h.ndjson:3: bad")},
		Replayed: load.Replayed{
			Written: 9, Delivered: 20, Conflated: 7, Watchers: 3, Misfits: 4, Objects: 5, Equal: 1,
			Lost:        []load.Loss{{Reason: "expired", Watchers: 1, Err: errors.New("too old")}},
			Differences: []string{`watcher 2 and the backend: "a" is not there and 1 at revision 2`},
		},
	}))
}

// Informers and object caches have no latency, however many events reach them.
func TestText_SaysOfWhatLatencyIsNotMeasured(t *testing.T) {
	for _, via := range []load.Via{load.ViaInformer, load.ViaObjectCache} {
		got := text(t, &replay.Report{Via: via, Replayed: load.Replayed{Watchers: 1, Delivered: 9}})
		require.Contains(t, got, "latency    not measured with --via "+via.String()+"\n")
	}
}

func TestText_OfAnInterruptedRunClaimsNothing(t *testing.T) {
	got := text(t, &replay.Report{Replayed: load.Replayed{Interrupted: true, Watchers: 3}})
	require.True(t, strings.HasPrefix(got, "stopped    interrupted before the end"), got)
	require.True(t, strings.HasSuffix(got, "equal      not compared\n"), got)
}

// The rates are of what this process has done.
func TestText_OfAContinuedRun(t *testing.T) {
	require.Equal(t, `trace      h.ndjson: 9,042 changes, 9,042 written, 0 of them made no difference
continued  after 9,000 changes and 900 deliveries
took       2s: 21 events/s, 50 deliveries/s (1,000 in all)
latency    not measured: no event reached a watcher at full speed as it happened
reconnects 0, 0 of them listed again
lost       none
equal      1 of 1 watchers have the 5 objects that "ext=go" selects of those in the backend
`, text(t, &replay.Report{File: "h.ndjson", Changes: 9042, Select: "ext=go", Replayed: load.Replayed{
		Written: 9042, Continued: 9000, Took: 2 * time.Second, Delivered: 1000, DeliveredBefore: 900, Watchers: 1, Objects: 5, Equal: 1,
	}}))
}

func TestText_SaysThatItWasContinuedAfterAnyChange(t *testing.T) {
	require.Contains(t, text(t, &replay.Report{Replayed: load.Replayed{Continued: 1}}), "\ncontinued  after 1 changes and 0 deliveries\n")
	require.NotContains(t, text(t, &replay.Report{}), "continued")
}

func TestText_SaysHowToGoOnIfThatIsPossible(t *testing.T) {
	stopped := replay.Report{Replayed: load.Replayed{Interrupted: true}}
	require.NotContains(t, text(t, &stopped), "go on")
	stopped.Checkpoints = "saved"
	require.Contains(t, text(t, &stopped), "\ngo on      with --continue and the same flags\n")
	require.NotContains(t, text(t, &replay.Report{Checkpoints: "saved"}), "go on", "it is at its end")
}

func TestText_SaysThatThereIsMoreOnlyIfThereIs(t *testing.T) {
	all := text(t, &replay.Report{BadLines: 2, Errors: []error{errors.New("x:3: bad"), errors.New("x:4: bad")}})
	require.Contains(t, all, "left out   2 bad lines\n  x:3: bad\n  x:4: bad\ntook ")
}
