package compare

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/watchmill/watchmill/bench"
)

// header is the header of the table, whose figures are medians.
var header = []string{"workload", "metric", "ours", "rival", "ours / rival (min to max)", "goal", "met", "floor", "× floor"}

// none is the text of an empty cell.
const none = "–"

// WriteMarkdown writes the machine, a summary, the table, and a legend of the workloads.
func (r *Report) WriteMarkdown(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n", r.Machine, r.rounds())
	if r.Small {
		b.WriteString("Small sizes: the figures are meaningless.\n\n")
	}
	if summary := r.summary(); len(summary) > 1 {
		writeTable(&b, summary)
		b.WriteString("\n")
	}
	cells := [][]string{header}
	var last Row
	for _, row := range r.Rows() {
		cells = append(cells, row.cells(last))
		last = row
	}
	writeTable(&b, cells)
	b.WriteString("\n")
	for _, m := range r.Workloads {
		fmt.Fprintf(&b, "- %s: %s.", m.ID, m.Text)
		if d := m.disturbance(); d != "" {
			fmt.Fprintf(&b, " %s.", d)
		}
		b.WriteString("\n")
	}
	for _, failure := range r.Failures() {
		fmt.Fprintf(&b, "- Failed: %s.\n", failure)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// rounds describes the number of rounds.
func (r *Report) rounds() string {
	most := 0
	for _, m := range r.Workloads {
		most = max(most, len(m.Rounds))
	}
	if most == 1 {
		return "One round."
	}
	return fmt.Sprintf("Medians of %d rounds.", most)
}

// cells returns the row as text, without what repeats the row before: the
// workload's name, and the cells that are the same for every rival.
func (r Row) cells(before Row) []string {
	rival := none
	if r.Rival != "" {
		rival = r.quantity(r.Theirs) + " " + r.Rival
	}
	again := r.ID == before.ID && r.Metric.Name == before.Metric.Name
	goals, met := r.verdicts(again)
	cells := []string{r.ID, r.Metric.Name, r.quantity(r.Ours), rival, ratio(r.Ratio), goals, met, r.quantity(r.Floor), times(r.Times)}
	if r.ID == before.ID {
		cells[0] = ""
	}
	if again {
		cells[1], cells[2], cells[7], cells[8] = "", "", "", ""
	}
	return cells
}

func (r Row) quantity(s Spread) string {
	if !s.Known() {
		return none
	}
	return bench.Metric{Unit: r.Metric.Unit, Value: s.Median}.String()
}

// verdicts returns the goals and whether each was met. If the other goals have been shown,
// it returns only those against rivals.
func (r Row) verdicts(shown bool) (goals, met string) {
	var texts, words []string
	for _, v := range r.Goals {
		if v.To == bench.ToRival || !shown {
			texts, words = append(texts, v.String()), append(words, v.word())
		}
	}
	return strings.Join(texts, ", "), strings.Join(words, ", ")
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
