package report

import (
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/watchmill/watchmill/internal/machine"
)

// Schema is the version of the JSON. It changes when a field is removed or changes its
// meaning, but not when fields are added.
const Schema = "watchmill.sim/1"

// Report has the results of a run. Durations are in seconds, memory in bytes, points
// in time in seconds since the load began.
type Report struct {
	Schema string `json:"schema"`
	// Scenario is the scenario's name. Plan is the hash of the resolved plan, see
	// scenario.Plan: runs of one plan can be compared.
	Scenario string `json:"scenario"`
	About    string `json:"about,omitempty"`
	Small    bool   `json:"small,omitempty"`
	Seed     uint64 `json:"seed"`
	Plan     string `json:"plan"`
	Build    Build  `json:"build"`

	// Started is when the load began, or when the run began if it was stopped
	// before. Load is how long the load lasted, Took how long it took until a watcher
	// received the last event; at least Load.
	Started time.Time `json:"started"`
	Load    float64   `json:"load"`
	Took    float64   `json:"took"`
	// Interrupted is set if the run was stopped before its end. The figures are
	// those of the part that ran, and there are no assertions.
	Interrupted bool `json:"interrupted,omitempty"`

	// Metrics are by name, in the units of scenario.Metrics; what was not measured is missing.
	// GoroutinesBefore is the number of goroutines at the start, without those of the program that ended
	// during the run.
	Metrics          map[string]float64 `json:"metrics"`
	GoroutinesBefore float64            `json:"goroutinesBefore"`
	Assertions       []Assertion        `json:"assertions"`
	// Broken lists broken invariants: events out of order, events that came twice,
	// events of revisions that were never written, writes that were acknowledged and not
	// stored, reads that are stale or not of one state. It has the first of each of the first ten
	// watchers that saw any, and one for each group of writers, of readers and of informers.
	Broken []string `json:"broken,omitempty"`
	// Errors are the first few errors of writers, readers and watchers, and those
	// that the engine reported.
	Errors []string `json:"errors,omitempty"`
	// Remarks are about what the scenario did not test: its faults that struck nothing, however
	// often they happened.
	Remarks []string `json:"remarks,omitempty"`

	// Disturbance says how much of the machine other programs used during the run.
	Disturbance Disturbance `json:"disturbance"`

	// Latency has one entry per stage, end to end first.
	Latency []Stage   `json:"latency"`
	Groups  []Group   `json:"groups"`
	Worst   []Watcher `json:"worst"`
	Faults  []Fault   `json:"faults,omitempty"`
	Samples []Sample  `json:"samples"`
}

// Assertion is an assertion of the scenario with its result.
type Assertion struct {
	Text  string  `json:"text"`
	Value float64 `json:"value"`
	// Unmeasured is set if the assertion is about a latency, or about how far watchers are
	// behind, that was not measured. It does not hold then.
	Unmeasured bool `json:"unmeasured,omitempty"`
	Holds      bool `json:"holds"`
}

// Stage is the latency of one part of the way from a write to a consumer.
type Stage struct {
	Name string `json:"name"`
	// About says between which points the latency is measured, and how.
	About string  `json:"about"`
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
	// Curve is the latency at increasing percentiles.
	Curve []Point `json:"curve,omitempty"`
}

// Point is the latency at a percentile, from 0 to 100.
type Point struct {
	Percentile float64 `json:"percentile"`
	Seconds    float64 `json:"seconds"`
}

// Group has the results of one group of the scenario.
type Group struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Count is the size of the group. Events is how many events its members received,
	// wrote or read.
	Count  int    `json:"count"`
	Events uint64 `json:"events"`
	// Slow is set if the scenario limits the speed of its consumers. Its latency is
	// left out of that of the run.
	Slow bool `json:"slow,omitempty"`
	// Measured is the number of latencies that were measured.
	Measured int64   `json:"measured"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	Max      float64 `json:"max"`
	// Failed is how many calls of writers, readers or caches failed, and Missed how many were
	// due but not made in time.
	Failed uint64 `json:"failed"`
	Missed uint64 `json:"missed"`
	// Stale is how many references of caches, or handlers of informers, did not have the newest
	// state in the end.
	Stale int `json:"stale"`
	// Lost, Reconnects, Relists and Unread are those of watchers. For informers Unread is
	// Stale. For other groups all are zero.
	Lost       uint64 `json:"lost"`
	Reconnects int    `json:"reconnects"`
	Relists    int    `json:"relists"`
	Unread     int    `json:"unread"`
	// Ends counts, by reason, watches that were not ended by their consumers.
	Ends map[string]int `json:"ends,omitempty"`
}

// Watcher is one of the watchers with the worst results.
type Watcher struct {
	Name      string `json:"name"`
	Delivered uint64 `json:"delivered"`
	Lost      uint64 `json:"lost"`
	Unread    bool   `json:"unread,omitempty"`
	// Lag is the most events that the watcher was behind when it was sampled. It is
	// not measured if Follows is set: the watcher follows the engine, and does not show its
	// watch. Max and Mean are its latency, zero if none was measured.
	Lag        uint64  `json:"lag"`
	Follows    bool    `json:"follows,omitempty"`
	Max        float64 `json:"max"`
	Mean       float64 `json:"mean"`
	Reconnects int     `json:"reconnects"`
	Relists    int     `json:"relists"`
	// LastEnd is the error of the last watch that ended without being stopped, "" if
	// there was none.
	LastEnd string `json:"lastEnd,omitempty"`
}

// Fault is one occurrence of a fault.
type Fault struct {
	Name  string  `json:"name"`
	Kind  string  `json:"kind"`
	At    float64 `json:"at"`
	Until float64 `json:"until"`
	// Struck is how many calls or watchers it affected.
	Struck uint64 `json:"struck"`
}

// Sample is the state at one point in time. Rates and latencies are those since the
// previous sample.
type Sample struct {
	At            float64 `json:"at"`
	WriteRate     float64 `json:"writeRate"`
	DeliveryRate  float64 `json:"deliveryRate"`
	P50           float64 `json:"p50"`
	P99           float64 `json:"p99"`
	Max           float64 `json:"max"`
	Lag           uint64  `json:"lag"`
	Stalled       int     `json:"stalled"`
	Watches       int     `json:"watches"`
	Heap          uint64  `json:"heap"`
	Goroutines    int     `json:"goroutines"`
	CacheRevision uint64  `json:"cacheRevision"`
	// Others is the share of the processors that other programs and other machines on
	// the same host used, from 0 to 1; 0 where the system does not report it. TimerLate is
	// the longest delay of a timer that serves only to measure such delays.
	Others    float64 `json:"others"`
	TimerLate float64 `json:"timerLate"`
}

// OK reports whether the run was not interrupted, all assertions hold, and no
// invariant is broken.
func (r *Report) OK() bool {
	return !r.Interrupted && len(r.Broken) == 0 && !slices.ContainsFunc(r.Assertions, func(a Assertion) bool { return !a.Holds })
}

// Build describes the program and the machine of a run.
type Build struct {
	// Revision is the commit from which the program was built, "" if it is not
	// known. Modified is set if there were uncommitted changes.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	// CPU is the model, "" if it is not known. CPUs is the number of CPUs, Procs how
	// many of them Go used.
	CPU   string `json:"cpu,omitempty"`
	CPUs  int    `json:"cpus"`
	Procs int    `json:"procs"`
}

// ThisBuild describes the running program and its machine.
func ThisBuild() Build {
	b := Build{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPU: machine.CPU(), CPUs: runtime.NumCPU(), Procs: runtime.GOMAXPROCS(0),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}
