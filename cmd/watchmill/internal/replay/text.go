package replay

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/watchmill/watchmill/sim/report"
)

// WriteText writes the report as text for people. It returns the error of w.
func (r *Report) WriteText(w io.Writer) error {
	var out strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "%-11s", name)
		fmt.Fprintf(&out, format, args...)
		out.WriteByte('\n')
	}
	if r.Interrupted {
		line("stopped", "interrupted before the end: the figures are of what ran so far")
		if r.Checkpoints != "" {
			line("go on", "with --continue and the same flags")
		}
	}
	line("trace", "%s: %s changes, %s written, %s of them made no difference", r.File, report.Number(r.Changes), report.Number(r.Written), report.Number(r.NoOps))
	if r.BadLines > 0 {
		line("left out", "%s bad lines", report.Number(r.BadLines))
		writeErrors(&out, r.Errors, r.BadLines)
	}
	if r.Continued > 0 {
		line("continued", "after %s changes and %s deliveries", report.Number(r.Continued), report.Number(r.DeliveredBefore))
	}
	line("took", "%v: %s events/s, %s deliveries/s (%s in all)", r.Took.Round(time.Microsecond),
		report.Number(r.PerSecond(uint64(r.Written-r.Continued))), report.Number(r.PerSecond(r.Delivered-r.DeliveredBefore)), report.Number(r.Delivered))
	line("latency", "%s", r.latency())
	line("reconnects", "%s, %s of them listed again", report.Number(r.Resumed), report.Number(r.Relisted))
	if r.Conflated > 0 {
		line("conflated", "%s of the deliveries stand for several events", report.Number(r.Conflated))
	}
	r.writeLosses(line)
	r.writeComparison(&out, line)
	_, err := io.WriteString(w, out.String())
	return err
}

// PerSecond returns n divided by the seconds that the run took; zero if it took no time.
func (r *Report) PerSecond(n uint64) float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(n) / r.Took.Seconds()
}

func (r *Report) writeLosses(line func(name, format string, args ...any)) {
	if len(r.Lost) == 0 {
		line("lost", "none")
	}
	for _, l := range r.Lost {
		line("lost", "%s of %s watchers: %s (%v)", report.Number(l.Watchers), report.Number(r.Watchers), l.Reason, l.Err)
	}
}

func (r *Report) writeComparison(out *strings.Builder, line func(name, format string, args ...any)) {
	if r.Misfits > 0 {
		line("misfits", "%s events did not fit the state of the watcher that got them", report.Number(r.Misfits))
	}
	if r.Interrupted {
		line("equal", "not compared")
		return
	}
	which := "that the backend has"
	if r.Select != "" {
		which = fmt.Sprintf("that %s selects of those in the backend", quoted(r.Select))
	}
	line("equal", "%s of %s watchers have the %s objects %s", report.Number(r.Equal), report.Number(r.Watchers), report.Number(r.Objects), which)
	for _, d := range r.Differences {
		fmt.Fprintf(out, "  %s\n", d)
	}
}

// writeErrors writes the errors, and how many of total are not among them.
func writeErrors(out *strings.Builder, errs []error, total int) {
	for _, err := range errs {
		fmt.Fprintf(out, "  %v\n", err)
	}
	if more := total - len(errs); more > 0 {
		fmt.Fprintf(out, "  and %s more\n", report.Number(more))
	}
}

// latency describes the latency for people.
func (r *Report) latency() string {
	l := r.Latency
	switch {
	case l.Events > 0:
		return fmt.Sprintf("p50 %v, p99 %v, max %v from commit to consumer (%s live deliveries)", l.P50, l.P99, l.Max, report.Number(l.Events))
	case !r.Via.Follows():
		return fmt.Sprintf("not measured with --via %v", r.Via)
	}
	return "not measured: no event reached a watcher at full speed as it happened"
}
