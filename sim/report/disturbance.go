package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/watchmill/watchmill/sim/scenario"
)

// Disturbance says how much other programs disturbed a run: with few processors left,
// latencies are those of the machine, not those of the engine.
type Disturbance struct {
	// Others is the share of the processors that other programs and other machines on
	// the same host used during the load, from 0 to 1; 0 where the system does not report
	// it.
	Others float64 `json:"others"`
}

// The shares of the processors above which other programs count as disturbing a run: of
// the whole load, and of the worst sample.
const (
	mostOthers    = 0.05
	mostOthersNow = 0.2
)

// Disturbed reports whether other programs used so much of the processors that latencies
// mean little.
func (r *Report) Disturbed() bool {
	return r.Disturbance.Others > mostOthers || r.worstSample().Others > mostOthersNow
}

// worstSample returns the sample in which other programs used most of the processors.
func (r *Report) worstSample() Sample {
	if len(r.Samples) == 0 {
		return Sample{}
	}
	return slices.MaxFunc(r.Samples, func(a, b Sample) int { return cmp.Compare(a.Others, b.Others) })
}

// otherPrograms describes the disturbance, as in "other programs used 3 % of the processors, 41 % at 2.5s".
func (r *Report) otherPrograms() string {
	worst := r.worstSample()
	text := fmt.Sprintf("other programs used %s of the processors", percent(r.Disturbance.Others))
	if worst.Others > 0 {
		text += fmt.Sprintf(", %s at %s", percent(worst.Others), Seconds(worst.At))
	}
	return text
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// timerLate returns the longest delay of a timer, in seconds.
func (r *Report) timerLate() (late float64) {
	for i := range r.Samples {
		late = max(late, r.Samples[i].TimerLate)
	}
	return late
}

// remark says why an assertion about speed may have failed: because other programs
// disturbed the machine. It returns "" for other assertions, and if the machine was quiet.
func (r *Report) remark(a *Assertion) string {
	m := a.check().Metric
	paced := m.Unit == scenario.Time || m.Unit == scenario.PerSecond || m.Name == "unwritten" || m.Name == "missed-reads"
	if a.Holds || a.Unmeasured || !r.Disturbed() || !paced {
		return ""
	}
	return "the machine was disturbed, which may be why: " + r.otherPrograms()
}
