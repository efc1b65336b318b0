package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/sim/scenario"
)

// Comparison is how two runs differ. Make one with [Compare].
type Comparison struct {
	// Before and After are the runs.
	Before, After *Report
	// Notes are what makes the figures hard to compare: another plan, another
	// machine, a run that was interrupted.
	Notes []string
	// Changes are the metrics whose values differ, in the order of
	// scenario.Metrics.
	Changes []Change
	// Verdicts are assertions that hold in one run only.
	Verdicts []string
}

// Change is a metric whose value differs.
type Change struct {
	Metric        scenario.Metric
	Before, After float64
}

// Ratio returns by how much the value has changed: 0.1 is ten percent more. It
// is infinite from zero.
func (c Change) Ratio() float64 { return (c.After - c.Before) / c.Before }

// Compare returns how the run after differs from the one before.
func Compare(before, after *Report) *Comparison {
	c := &Comparison{Before: before, After: after}
	c.note("the plans differ", short(before.Plan), short(after.Plan))
	c.note("the scenarios differ", before.Scenario, after.Scenario)
	c.note("the machines differ", before.Build.machine(), after.Build.machine())
	c.note("Go differs", before.Build.Go, after.Build.Go)
	c.note("one of them was interrupted", ended(before), ended(after))
	for _, m := range scenario.Metrics {
		b, a := before.Metrics[m.Name], after.Metrics[m.Name]
		if b != a {
			c.Changes = append(c.Changes, Change{Metric: m, Before: b, After: a})
		}
	}
	c.verdicts()
	return c
}

func (c *Comparison) note(what, before, after string) {
	if before != after {
		c.Notes = append(c.Notes, fmt.Sprintf("%s: %s before, %s after", what, before, after))
	}
}

func short(hash string) string { return hash[:min(12, len(hash))] }

func ended(r *Report) string {
	if r.Interrupted {
		return "interrupted"
	}
	return "complete"
}

// machine is what a run's speed depends on.
func (b Build) machine() string {
	return strings.TrimPrefix(fmt.Sprintf("%s, %d of %d CPUs, %s/%s", b.CPU, b.Procs, b.CPUs, b.OS, b.Arch), ", ")
}

// verdicts compares the assertions that both runs made.
func (c *Comparison) verdicts() {
	for _, a := range c.After.Assertions {
		i := slices.IndexFunc(c.Before.Assertions, func(b Assertion) bool { return b.Text == a.Text })
		switch {
		case i < 0 || c.Before.Assertions[i].Holds == a.Holds:
		case a.Holds:
			c.Verdicts = append(c.Verdicts, a.Text+" holds now")
		default:
			c.Verdicts = append(c.Verdicts, a.Text+" no longer holds")
		}
	}
}

// WriteText writes the comparison for people.
func (c *Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seed %d: %s, then %s\n", c.After.Scenario, c.After.Seed, c.Before.Build.revision(), c.After.Build.revision())
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "note       %s\n", n)
	}
	if len(c.Changes) == 0 {
		b.WriteString("nothing changed\n")
	} else {
		fmt.Fprintf(&b, "\n%-16s %14s %14s %10s\n", "metric", "before", "after", "change")
	}
	for _, ch := range c.Changes {
		fmt.Fprintf(&b, "%-16s %14s %14s %10s\n", ch.Metric.Name, Value(ch.Metric.Unit, ch.Before), Value(ch.Metric.Unit, ch.After), ch.percent())
	}
	for _, v := range c.Verdicts {
		fmt.Fprintf(&b, "assertion  %s\n", v)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// percent prints the ratio.
func (c Change) percent() string {
	ratio := c.Ratio()
	switch {
	case math.IsInf(ratio, 0):
		return "from none"
	case ratio >= 9.995:
		return fmt.Sprintf("%.1fx", ratio+1)
	}
	return fmt.Sprintf("%+.1f %%", 100*ratio)
}

// revision names the program that was run.
func (b Build) revision() string {
	switch {
	case b.Revision == "":
		return "an unknown revision"
	case b.Modified:
		return short(b.Revision) + ", modified"
	}
	return short(b.Revision)
}
