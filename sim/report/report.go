package report

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Schema is the version of the JSON. It changes when a field changes its meaning
// or goes; new fields do not change it.
const Schema = "watchmill.sim/1"

// Report is what happened in a run. Times are in seconds, memory in bytes,
// moments in seconds since the load began.
type Report struct {
	Schema string `json:"schema"`
	// Scenario is its name, Plan the hash of the resolved plan (which includes
	// the seed and the content of traces): runs of one plan can be compared.
	Scenario string `json:"scenario"`
	About    string `json:"about,omitempty"`
	Small    bool   `json:"small,omitempty"`
	Seed     uint64 `json:"seed"`
	Plan     string `json:"plan"`
	Build    Build  `json:"build"`

	// Started is when the load began, or the run if it was stopped before, Load
	// how long it lasted, Took how long it was until everything was read.
	Started time.Time `json:"started"`
	Load    float64   `json:"load"`
	Took    float64   `json:"took"`
	// Interrupted: the run was stopped before its end; the figures are of what
	// ran so far, and nothing was asserted.
	Interrupted bool `json:"interrupted,omitempty"`

	// Metrics are by name, in the units of scenario.Metrics. GoroutinesBefore is
	// how many there were at the start.
	Metrics          map[string]float64 `json:"metrics"`
	GoroutinesBefore float64            `json:"goroutinesBefore"`
	Assertions       []Assertion        `json:"assertions"`
	// Broken is what must never happen: events out of order, events that came
	// twice, events that nobody wrote. It has what came first to each of the first
	// ten watchers it happened to, and one for each group of informers.
	Broken []string `json:"broken,omitempty"`
	// Errors are the first few of the errors that writers, readers and watchers
	// met, and the engine reported.
	Errors []string `json:"errors,omitempty"`

	// Latency is by stage, end to end first.
	Latency []Stage   `json:"latency"`
	Groups  []Group   `json:"groups"`
	Worst   []Watcher `json:"worst"`
	Faults  []Fault   `json:"faults,omitempty"`
	Samples []Sample  `json:"samples"`
}

// Assertion is one that was made, and whether it holds.
type Assertion struct {
	Text  string  `json:"text"`
	Value float64 `json:"value"`
	// Unmeasured: it is about a latency, and there was nothing to measure. It
	// does not hold then.
	Unmeasured bool `json:"unmeasured,omitempty"`
	Holds      bool `json:"holds"`
}

// Stage is the latency of one stretch of an event's way.
type Stage struct {
	Name string `json:"name"`
	// About says from where to where, and how it is known.
	About string  `json:"about"`
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
	// Curve is the latency at ever higher percentiles.
	Curve []Point `json:"curve,omitempty"`
}

// Point is the latency at a percentile, from 0 to 100.
type Point struct {
	Percentile float64 `json:"percentile"`
	Seconds    float64 `json:"seconds"`
}

// Group sums up one group of watchers, writers or readers.
type Group struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Count is how many they are, Events what they were handed, wrote or read.
	Count  int    `json:"count"`
	Events uint64 `json:"events"`
	// Slow: not at full speed by the scenario's will, so that its latency does
	// not count for the whole.
	Slow bool `json:"slow,omitempty"`
	// Measured is of how many of them there is a latency.
	Measured int64   `json:"measured"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	Max      float64 `json:"max"`
	// Lost, Reconnects, Relists and Unread are those of watchers.
	Lost       uint64 `json:"lost"`
	Reconnects int    `json:"reconnects"`
	Relists    int    `json:"relists"`
	Unread     int    `json:"unread"`
	// Ends counts, by reason, watches that ended otherwise than by their
	// consumers.
	Ends map[string]int `json:"ends,omitempty"`
}

// Watcher is one of the watchers that fared worst.
type Watcher struct {
	Name      string `json:"name"`
	Delivered uint64 `json:"delivered"`
	Lost      uint64 `json:"lost"`
	Unread    bool   `json:"unread,omitempty"`
	// Lag is the most events it was behind, as sampled, Max its longest latency,
	// Mean its mean one.
	Lag        uint64  `json:"lag"`
	Max        float64 `json:"max"`
	Mean       float64 `json:"mean"`
	Reconnects int     `json:"reconnects"`
	Relists    int     `json:"relists"`
	// LastEnd is why its last watch ended, if not by itself.
	LastEnd string `json:"lastEnd,omitempty"`
}

// Fault is one that happened.
type Fault struct {
	Name  string  `json:"name"`
	Kind  string  `json:"kind"`
	At    float64 `json:"at"`
	Until float64 `json:"until"`
	// Struck is how many calls or watchers it struck.
	Struck uint64 `json:"struck"`
}

// Sample is the state at one moment. Rates and latencies are of the time since
// the sample before.
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
}

// OK reports whether the run came to its end, all assertions hold and no
// invariant is broken.
func (r *Report) OK() bool {
	if r.Interrupted || len(r.Broken) > 0 {
		return false
	}
	for _, a := range r.Assertions {
		if !a.Holds {
			return false
		}
	}
	return true
}

// Build is the program and the machine that a run was made with.
type Build struct {
	// Revision is the commit that the program was built from, "" if it does not
	// know; Modified says that there were changes besides.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	// CPU is the model, "" if the system does not tell; CPUs how many there are,
	// Procs how many Go used.
	CPU   string `json:"cpu,omitempty"`
	CPUs  int    `json:"cpus"`
	Procs int    `json:"procs"`
}

// ThisBuild describes the running program and its machine.
func ThisBuild() Build {
	b := Build{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPU: cpuModel(), CPUs: runtime.NumCPU(), Procs: runtime.GOMAXPROCS(0),
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

// cpuModel asks Linux; other systems do not tell without their own libraries.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
