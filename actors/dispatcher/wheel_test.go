package dispatcher

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestWheel_Scenarios runs testdata/wheel. Times count from the start of the
// scenario; its commands are:
//
//	period <duration>                                  begins with a new wheel
//	schedule <names> at=… [deadline=…] [waiting]       prints whether there is a next one
//	remove <names>
//	due at=…                                           prints the watches that are due
//	tick from=… to=… [again] [deadline=…] [waiting]    due at every second; "again" schedules
//	                                                   each anew with that deadline
//	buckets                                            prints the watches by their second
func TestWheel_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/wheel", func(t *testing.T, path string) {
		var w *wheel[string]
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			switch d.Cmd {
			case "period":
				period, err := time.ParseDuration(d.CmdArgs[0].Key)
				require.NoError(t, err)
				w = newWheel[string](period)
			case "schedule":
				for name := range strings.FieldsSeq(d.Input) {
					w.schedule(name, clockArg(t, d, "at"), clockArg(t, d, "deadline"), d.HasArg("waiting"))
					if !w.scheduled(name) {
						fmt.Fprintln(&out, name, "has no next bookmark")
					}
				}
			case "remove":
				for name := range strings.FieldsSeq(d.Input) {
					w.remove(name)
				}
			case "due":
				due := w.due(clockArg(t, d, "at"))
				if len(due) == 0 {
					return "none"
				}
				return strings.Join(due, " ")
			case "tick":
				return runTicks(t, d, w)
			case "buckets":
				return w.describe()
			default:
				t.Fatalf("unknown command %q", d.Cmd)
			}
			return out.String()
		})
	})
}

func runTicks(t *testing.T, d *datadriven.TestData, w *wheel[string]) string {
	var out strings.Builder
	to := durationArg(t, d, "to")
	for at := durationArg(t, d, "from"); at <= to; at += time.Second {
		due := w.due(start.Add(at))
		if len(due) > 0 {
			fmt.Fprintf(&out, "%s: %s\n", at, strings.Join(due, " "))
		}
		for _, name := range due {
			if !d.HasArg("again") {
				continue
			}
			w.schedule(name, start.Add(at), clockArg(t, d, "deadline"), d.HasArg("waiting"))
			if !w.scheduled(name) {
				fmt.Fprintf(&out, "%s: that was the last for %s\n", at, name)
			}
		}
	}
	return out.String()
}

// scheduled reports whether the watch gets a bookmark.
func (w *wheel[W]) scheduled(watch W) bool {
	_, ok := w.positions[watch]
	return ok
}

// describe prints the watches by their second of the wheel's time.
func (w *wheel[W]) describe() string {
	var out strings.Builder
	for _, s := range w.buckets {
		fmt.Fprintf(&out, "%ds:", s.number)
		for watch := range w.members(s) {
			fmt.Fprintf(&out, " %v", watch)
		}
		fmt.Fprintln(&out)
	}
	if out.Len() == 0 {
		return "empty"
	}
	return out.String()
}

func TestWheel_ChurnLeavesNothingBehind(t *testing.T) {
	w := newWheel[*int](time.Minute)
	watches := make([]*int, 10_000)
	for n := range watches {
		watches[n] = new(int)
		deadline := start.Add(time.Duration(3+n%100) * time.Second)
		w.schedule(watches[n], start.Add(time.Duration(n)), deadline, n%7 == 0)
		require.True(t, w.scheduled(watches[n]))
	}
	require.Equal(t, 10_000, w.len())
	for n := range watches { // from the middle, both ways
		w.remove(watches[(n*7919)%10_000])
	}
	require.Zero(t, w.len())
	require.Empty(t, w.buckets)
	require.Empty(t, w.due(start.Add(time.Hour)))
}

func TestWheel_ForgetsWhatWasRemovedWhileItWasDue(t *testing.T) {
	w := newWheel[string](time.Minute)
	w.schedule("a", start, time.Time{}, true)
	w.schedule("b", start, time.Time{}, true)
	require.Equal(t, []string{"a", "b"}, w.due(start.Add(time.Second)))
	w.remove("a")
	w.remove("a")
	require.Zero(t, w.len())
	require.Empty(t, w.buckets)
}

// The zero watch is a watch too, in particular in the first slot of the
// first second, where a hole looks just like it.
func TestWheel_TellsHolesFromTheZeroWatcher(t *testing.T) {
	w := newWheel[int](time.Minute)
	for n := range 3 {
		w.schedule(n, start, time.Time{}, true)
	}
	w.remove(0)
	require.Equal(t, []int{1, 2}, w.due(start))
	w.schedule(0, start, time.Time{}, true)
	require.Equal(t, []int{0}, w.due(start))
}

func TestWheel_TimesFarAwayDoNotOverflow(t *testing.T) {
	w := newWheel[string](time.Minute)
	w.schedule("long ago", start, time.Unix(-1<<40, 0), false)
	require.False(t, w.scheduled("long ago"))
	w.schedule("in an age", start, time.Unix(1<<40, 0), false)
	require.True(t, w.scheduled("in an age"))
	require.Equal(t, "60s: in an age\n", w.describe())
	far := time.Unix(1<<40, 0)
	require.Equal(t, []string{"in an age"}, w.due(far))
	for _, now := range []time.Time{far, start, far} {
		w.due(now)
		w.schedule("a", now, time.Time{}, false)
		require.True(t, w.scheduled("a"))
		require.Empty(t, w.due(now.Add(59*time.Second)))
		require.Equal(t, []string{"a"}, w.due(now.Add(time.Minute)))
	}
}

// A clock that leapt must not use up the numbers for seconds.
func TestWheel_LeapsDoNotUseUpTheSeconds(t *testing.T) {
	w := newWheel[string](time.Minute)
	w.due(start)
	edge := start.Add((1<<32 - 30) * time.Second)
	w.schedule("a", edge, time.Time{}, false)
	require.True(t, w.scheduled("a"))
	require.Empty(t, w.due(edge.Add(10*time.Second)))
	require.Empty(t, w.due(edge.Add(59*time.Second)))
	require.Equal(t, []string{"a"}, w.due(edge.Add(time.Minute)))
}

// wheelModel says what the wheel promises: each once, less than a second early
// and at the first call after its time, earlier seconds first; by a time that
// adds up what the clock gains.
type wheelModel struct {
	now, elapsed time.Duration
	due          map[int]time.Duration
}

func (m *wheelModel) step(to time.Duration) {
	m.elapsed += max(to-m.now, 0)
	m.now = to
}

func (m *wheelModel) schedule(watch int, period, deadline time.Duration, waiting bool) bool {
	wait := min(period, deadline-bookmarkLead-m.now)
	if waiting {
		wait = 0
	}
	delete(m.due, watch)
	if !waiting && wait <= 0 {
		return false
	}
	m.due[watch] = m.elapsed + wait
	return true
}

func (m *wheelModel) require(t *rapid.T, got []int) {
	latest := time.Duration(0)
	for _, watch := range got {
		due, ok := m.due[watch]
		require.True(t, ok, "%d was not scheduled, or came twice", watch)
		require.Less(t, due, m.elapsed+time.Second, "%d came too early", watch)
		require.Greater(t, due, latest-time.Second, "%d came after one of a later second", watch)
		latest = max(latest, due)
		delete(m.due, watch)
	}
	for watch, due := range m.due {
		require.Greater(t, due, m.elapsed, "%d is late", watch)
	}
}

func TestWheel_KeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := time.Duration(rapid.IntRange(1, 90).Draw(t, "period")) * time.Second
		w := newWheel[int](period)
		w.due(start)
		m := &wheelModel{due: map[int]time.Duration{}}
		watches := rapid.IntRange(0, 9)
		t.Repeat(map[string]func(*rapid.T){
			"schedule": func(t *rapid.T) {
				watch, waiting := watches.Draw(t, "watch"), rapid.Bool().Draw(t, "waiting")
				deadline := m.now + time.Duration(rapid.IntRange(-5_000, 100_000).Draw(t, "deadline"))*time.Millisecond
				want := m.schedule(watch, period, deadline, waiting)
				w.schedule(watch, start.Add(m.now), start.Add(deadline), waiting)
				require.Equal(t, want, w.scheduled(watch))
			},
			"remove": func(t *rapid.T) {
				watch := watches.Draw(t, "watch")
				delete(m.due, watch)
				w.remove(watch)
			},
			"tick": func(t *rapid.T) {
				ms := rapid.OneOf(rapid.IntRange(0, 3_000), rapid.IntRange(-100_000, 300_000)).Draw(t, "milliseconds")
				m.step(m.now + time.Duration(ms)*time.Millisecond)
				m.require(t, w.due(start.Add(m.now)))
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(m.due), w.len())
				require.LessOrEqual(t, len(w.buckets), w.len())
			},
		})
	})
}

func BenchmarkWheelTick(b *testing.B) {
	w := newWheel[*int](time.Minute)
	now := start
	for n := range 100_000 {
		w.schedule(new(int), now.Add(time.Duration(n)*600*time.Microsecond), time.Time{}, false)
	}
	now = now.Add(time.Minute)
	served := 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		for _, watch := range w.due(now) {
			w.schedule(watch, now, time.Time{}, false)
			served++
		}
	}
	b.ReportMetric(float64(served)/float64(b.N), "bookmarks/op")
}

// BenchmarkWheelMemory reports what 100,000 idle watches cost.
func BenchmarkWheelMemory(b *testing.B) {
	const watches = 100_000
	all := make([]int, watches)
	var kept *wheel[*int]
	before := heapInUse()
	for b.Loop() {
		kept = newWheel[*int](time.Minute)
		for n := range all {
			kept.schedule(&all[n], start.Add(time.Duration(n)*600*time.Microsecond), time.Time{}, false)
		}
	}
	b.ReportMetric(float64(heapInUse()-before)/watches, "B/watch")
	runtime.KeepAlive(kept)
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
