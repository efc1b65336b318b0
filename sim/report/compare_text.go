package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// WriteText writes the comparison as text, with a table of 80 columns. Errors: the error of w.
func (c *Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	names := listed(facts(c.After, func(r *Report) string { return r.Scenario }))
	fmt.Fprintf(&b, "%s: %s, then %s\n", printable(names), printable(describeSide(c.Before)), printable(describeSide(c.After)))
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "note       %s\n", printable(n))
	}
	if len(c.Changes) == 0 {
		b.WriteString("nothing changed\n")
	} else {
		c.writeChanges(&b)
	}
	for _, v := range c.Verdicts {
		fmt.Fprintf(&b, "assertion  %s\n", printable(v))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// describeSide returns the revisions of a side's programs, and the number of runs.
func describeSide(side []*Report) string {
	return fmt.Sprintf("%s (%s)", listed(facts(side, func(r *Report) string { return r.Build.revision() })), runs(len(side)))
}

func (c *Comparison) writeChanges(b *strings.Builder) {
	fmt.Fprintf(b, "\n%-14s %10s %9s %10s %9s %10s\n", "metric", "before", "", "after", "", "change")
	for _, ch := range c.Changes {
		line := fmt.Sprintf("%-14s %10s %-9s %10s %-9s %10s  %s", ch.Metric.Name,
			Value(ch.Metric.Unit, ch.Before.Median), ch.deviation(ch.Before),
			Value(ch.Metric.Unit, ch.After.Median), ch.deviation(ch.After), ch.percent(), ch.evidence())
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if len(c.Before) > 1 || len(c.After) > 1 {
		c.writeLegend(b)
	}
}

// writeLegend explains the signs in the table.
func (c *Comparison) writeLegend(b *strings.Builder) {
	alpha := benchmath.DefaultThresholds.CompareAlpha
	b.WriteString("\nThe figures are medians. ± is how far from it the median may truly be, with 95 %\nconfidence; of fewer than 6 runs, how far from it the runs are.\n")
	if slices.ContainsFunc(c.Changes, func(ch Change) bool { return ch.Evidence == TooFew }) {
		fmt.Fprintf(b, "? are too few runs to tell a change from noise.\n")
		return
	}
	fmt.Fprintf(b, "~ is no more than noise: chance alone does that in more than %.0f %% of cases (p, by\nthe Mann-Whitney U test). It makes one steady metric in %.0f look changed, too.\n",
		100*alpha, 1/alpha)
}

// deviation returns how far the values are from their median: as a percentage or, if
// the median is zero, as the highest value.
func (c Change) deviation(s Spread) string {
	switch {
	case s.Low == s.High:
		return ""
	case s.Median > 0:
		return "± " + benchmath.Summary{Center: s.Median, Lo: s.Low, Hi: s.High}.PctRangeString()
	}
	return "to " + Value(c.Metric.Unit, s.High)
}

// percent returns the ratio as text.
func (c Change) percent() string {
	ratio := c.Ratio()
	switch {
	case c.Evidence == Noise:
		return "~"
	case c.Before.Median == c.After.Median:
		return "none"
	case math.IsInf(ratio, 0):
		return "from none"
	case ratio >= 9.995:
		return fmt.Sprintf("%.1fx", ratio+1)
	case math.Abs(ratio) < 0.0005:
		return "< 0.1 %"
	}
	return fmt.Sprintf("%+.1f %%", 100*ratio)
}

// evidence returns the probability as text, or "?" for too few runs.
func (c Change) evidence() string {
	if c.Evidence == TooFew {
		return "?"
	}
	return fmt.Sprintf("p=%.3f", c.P)
}
