package compare

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/watchmill/watchmill/bench"
)

// header is the table's; the figures are medians.
var header = []string{"workload", "metric", "ours", "rival", "ours / rival (min to max)", "goal", "met", "floor", "× floor"}

// none is shown where there is nothing to show.
const none = "–"

// WriteMarkdown writes the machine's facts, the table, and what the workloads
// are.
func (r *Report) WriteMarkdown(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Machine)
	if r.Small {
		b.WriteString("Small sizes: the figures mean nothing.\n\n")
	}
	cells := [][]string{header}
	last := ""
	for _, row := range r.Rows() {
		cells = append(cells, row.cells(row.ID != last))
		last = row.ID
	}
	writeTable(&b, cells)
	b.WriteString("\n")
	for _, m := range r.Workloads {
		fmt.Fprintf(&b, "- %s: %s. %d rounds.\n", m.ID, m.Text, len(m.Rounds))
	}
	for _, failure := range r.Failures() {
		fmt.Fprintf(&b, "- Failed: %s.\n", failure)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// cells returns the row as text, with the workload's name if it is the first of
// its rows.
func (r Row) cells(first bool) []string {
	id, rival := "", none
	if first {
		id = r.ID
	}
	if r.Rival != "" {
		rival = r.quantity(r.Theirs) + " " + r.Rival
	}
	goals, met := r.goals()
	return []string{id, r.Metric.Name, r.quantity(r.Ours), rival, ratio(r.Ratio), goals, met, r.quantity(r.Floor), times(r.Times)}
}

func (r Row) quantity(s Spread) string {
	if !s.Known() {
		return none
	}
	return bench.Metric{Unit: r.Metric.Unit, Value: s.Median}.String()
}

// goals returns the goals and whether each was met.
func (r Row) goals() (goals, met string) {
	var texts, verdicts []string
	for _, v := range r.Goals {
		texts = append(texts, v.String())
		verdicts = append(verdicts, v.word())
	}
	return strings.Join(texts, ", "), strings.Join(verdicts, ", ")
}

func (v Verdict) word() string {
	switch {
	case !v.Known:
		return none
	case v.Met:
		return "yes"
	default:
		return "**no**"
	}
}

func ratio(s Spread) string {
	switch {
	case !s.Known():
		return none
	case s.Min == s.Max:
		return times(s)
	default:
		return fmt.Sprintf("%s (%s to %s)", times(s), bench.Quantity(s.Min), bench.Quantity(s.Max))
	}
}

func times(s Spread) string {
	if !s.Known() {
		return none
	}
	return bench.Quantity(s.Median) + "×"
}

// writeTable writes a Markdown table whose columns are aligned as plain text too.
func writeTable(b *strings.Builder, cells [][]string) {
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range cells {
		for i, cell := range row {
			fmt.Fprintf(b, "| %s%s ", cell, strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("|\n")
		if n == 0 {
			for _, width := range widths {
				b.WriteString("|" + strings.Repeat("-", width+2))
			}
			b.WriteString("|\n")
		}
	}
}
