package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/sim/scenario"
)

// WriteText writes the report as plain text with lines of any length, for a file or
// another program. Errors: the error of w.
func (r *Report) WriteText(w io.Writer) error { return r.WriteTerminal(w, Terminal{}) }

// WriteTerminal writes the report as text for a terminal. Errors: the error of w.
func (r *Report) WriteTerminal(w io.Writer, terminal Terminal) error {
	t := &text{Terminal: terminal}
	t.head(r)
	t.rates(r)
	t.latency(r)
	t.groups(r)
	t.worst(r)
	t.faults(r)
	t.verdict(r)
	_, err := io.WriteString(w, t.String())
	return err
}

func (t *text) head(r *Report) {
	size := ""
	if r.Small {
		size = ", small"
	}
	t.line("scenario", "%s%s, seed %d, plan %.12s", r.Scenario, size, r.Seed, r.Plan)
	if r.Interrupted {
		t.mark(warning, "stopped", "interrupted before the end: the figures are of what ran so far")
	}
	t.line("took", "%s", r.ran())
}

// ran returns how long the run took. Informers and object caches may have read on after the last
// event of a watcher.
func (r *Report) ran() string {
	took := Seconds(r.Load) + " of load"
	if r.Interrupted {
		return took + ", then it was stopped"
	}
	if slices.ContainsFunc(r.Groups, func(g Group) bool { return g.Kind == "watchers" }) {
		took += fmt.Sprintf(", %s until watchers had their last event", Seconds(r.Took))
	}
	if r.Metrics["unread"]+r.Metrics["stale"] > 0 {
		took += ", and not everything was read"
	}
	return took
}

func (t *text) rates(r *Report) {
	m := r.Metrics
	t.line("writes", "%s, %s/s, %s failed, %s not made in time", Number(m["writes"]), Number(m["writes/s"]), Number(m["write-errors"]), Number(m["unwritten"]))
	t.line("deliveries", "%s, %s/s, %s stand for several events", Number(m["deliveries"]), Number(m["deliveries/s"]), Number(m["conflated"]))
	if m["reads"]+m["read-errors"]+m["missed-reads"] > 0 {
		t.line("reads", "%s, %s failed, %s not made in time", Number(m["reads"]), Number(m["read-errors"]), Number(m["missed-reads"]))
	}
	t.line("watchers", "%s stalled at most, %s events behind at most, %s reconnects, %s relists", r.value("stalled", Number[float64]), r.value("lag", Number[float64]), Number(m["reconnects"]), Number(m["relists"]))
	t.line("machine", "%s heap at most, %s goroutines left of %s", Memory(m["heap"]), Number(m["goroutines"]), Number(r.GoroutinesBefore))
	t.line("", "%s; a timer was %s late at most", r.otherPrograms(), Seconds(r.timerLate()))
}

func (t *text) latency(r *Report) {
	fmt.Fprintf(t, "\n%-12s %12s %9s %9s %9s %9s %9s\n", "latency", "events", "p50", "p90", "p99", "p99.9", "max")
	for _, s := range r.Latency {
		if s.Count > 0 {
			fmt.Fprintf(t, "%-12s %12s %9s %9s %9s %9s %9s\n", printable(s.Name), Number(s.Count),
				Seconds(s.P50), Seconds(s.P90), Seconds(s.P99), Seconds(s.P999), Seconds(s.Max))
		}
	}
}

func (t *text) groups(r *Report) {
	fmt.Fprintf(t, "\n%-22s %7s %12s %9s %9s %9s\n", "group", "count", "events", "p50", "p99", "max")
	for _, g := range r.Groups {
		t.row(fmt.Sprintf("%-22s %7d %12s %9s %9s %9s", g.Kind+" "+g.Name, g.Count, Number(g.Events),
			g.latency(g.P50), g.latency(g.P99), g.latency(g.Max)), g.Remarks())
	}
}

// latency returns one of the group's latencies as text.
func (g Group) latency(seconds float64) string {
	if g.Measured == 0 {
		return unmeasured
	}
	return Seconds(seconds)
}

// Remarks returns remarks about a group, such as "slow, 2 expired".
func (g Group) Remarks() string {
	var remarks []string
	add := func(n int, what string) {
		if n > 0 {
			remarks = append(remarks, fmt.Sprintf("%s %s", Number(n), what))
		}
	}
	if g.Slow {
		remarks = append(remarks, "slow")
	}
	add(int(g.Failed), "failed")
	add(int(g.Missed), "not made in time")
	add(g.Stale, "stale")
	add(int(g.Lost), "lost")
	if g.Kind != "informers" { // for which it is what is stale
		add(g.Unread, "unread")
	}
	add(g.Reconnects, "reconnects")
	add(g.Relists, "relists")
	for _, reason := range slices.Sorted(maps.Keys(g.Ends)) {
		add(g.Ends[reason], reason)
	}
	return strings.Join(remarks, ", ")
}

// worstShown is how many of the worst watchers the text lists.
const worstShown = 5

func (t *text) worst(r *Report) {
	if len(r.Worst) == 0 {
		return
	}
	fmt.Fprintf(t, "\n%-22s %12s %7s %9s %9s %7s\n", "worst watchers", "events", "behind", "mean", "max", "lost")
	for _, w := range r.Worst[:min(worstShown, len(r.Worst))] {
		t.row(fmt.Sprintf("%-22s %12s %7s %9s %9s %7s", w.Name, Number(w.Delivered), w.behind(),
			w.latency(w.Mean), w.latency(w.Max), Number(w.Lost)), w.Remarks())
	}
}

// behind returns by how many events the watcher was behind at most, as text.
func (w Watcher) behind() string {
	if w.Follows {
		return unmeasured
	}
	return Number(w.Lag)
}

// latency returns one of the watcher's latencies as text.
func (w Watcher) latency(seconds float64) string {
	if w.Max == 0 { // no event takes no time at all
		return unmeasured
	}
	return Seconds(seconds)
}

// Remarks returns remarks about a watcher, such as "unread, expired".
func (w Watcher) Remarks() string {
	remarks := w.LastEnd
	if w.Unread {
		remarks = strings.TrimSuffix("unread, "+remarks, ", ")
	}
	return remarks
}

func (t *text) faults(r *Report) {
	if len(r.Faults) == 0 {
		return
	}
	t.WriteString("\nfaults\n")
	for _, f := range r.Faults {
		fmt.Fprintf(t, "  %9s  %s", Seconds(f.At), printable(f.Name))
		if f.Until > f.At {
			fmt.Fprintf(t, ", for %s", Seconds(f.Until-f.At))
		}
		fmt.Fprintf(t, ": struck %s\n", Number(f.Struck))
	}
}

func (t *text) verdict(r *Report) {
	for _, e := range r.Errors {
		t.line("error", "%s", e)
	}
	for _, remark := range r.Remarks {
		t.mark(warning, "remark", "%s", remark)
	}
	t.WriteByte('\n')
	for _, a := range r.Assertions {
		verdict, as := "holds", good
		if !a.Holds {
			verdict, as = "FAILED", bad
		}
		t.mark(as, verdict, "%-24s it is %s", a.Text, a.Shown())
		if remark := r.remark(&a); remark != "" {
			t.mark(warning, "", "%s", remark)
		}
	}
	for _, b := range r.Broken {
		t.mark(bad, "BROKEN", "%s", b)
	}
}

// Shown returns the value in the unit of the metric that is asserted, in full if the limit
// that it misses would read the same.
func (a Assertion) Shown() string {
	if a.Unmeasured {
		return "not known: nothing was measured"
	}
	check := a.check()
	unit := check.Metric.Unit
	if shown := Value(unit, a.Value); a.Holds || shown != Value(unit, check.Limit) {
		return shown
	}
	return inFull(unit, a.Value)
}

// check returns what is asserted. What cannot be parsed has no unit, and is shown as a count is.
func (a *Assertion) check() scenario.Check {
	check, _ := scenario.Assertion(a.Text).Check()
	return check
}
