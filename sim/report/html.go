package report

import (
	_ "embed" // embeds the page
	"html/template"
	"io"
	"time"

	"github.com/watchmill/watchmill/sim/scenario"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"seconds": Seconds, "memory": Memory, "number": Number[float64],
	"latency": Group.latency, "behind": Watcher.behind, "ofWatcher": Watcher.latency,
	"count": func(n any) string { return Number(toFloat(n)) },
	"short": short, "when": formatTime,
	"lasts": func(f Fault) bool { return f.Until > f.At },
	"span":  func(f Fault) string { return Seconds(f.Until - f.At) },
}).Parse(pageSource))

// pageData is the data of the page's template.
type pageData struct {
	*Report
	Charts  []chart
	Verdict string
	Tiles   []tile
	Rows    []row
}

// tile is a figure at the top of the page.
type tile struct {
	Name, Value string
	// Bad is set if the value means a failure.
	Bad bool
}

// row is a row of the table of metrics.
type row struct{ Name, Value, About string }

// WriteHTML writes the report as one self-contained page, without scripts, in light and
// dark colours. Errors: the error of w.
func (r *Report) WriteHTML(w io.Writer) error {
	return page.Execute(w, &pageData{Report: r, Charts: r.charts(), Verdict: r.verdict(), Tiles: r.tiles(), Rows: r.rows()})
}

// verdict returns the result of the run in one word, which is also the class of its
// badge.
func (r *Report) verdict() string {
	switch {
	case len(r.Broken) > 0:
		return "broken"
	case r.Interrupted:
		return "interrupted"
	case !r.OK():
		return "failed"
	}
	return "passed"
}

func (r *Report) tiles() []tile {
	m := r.Metrics
	return []tile{
		{"median latency", r.value("p50", Seconds), false}, {"latency, 99th percentile", r.value("p99", Seconds), false},
		{"writes", Number(m["writes/s"]) + "/s", false}, {"deliveries", Number(m["deliveries/s"]) + "/s", false},
		{"events lost", Number(m["lost"]), m["lost"] > 0}, {"heap at most", Memory(m["heap"]), false},
	}
}

func (r *Report) rows() (rows []row) {
	for _, m := range scenario.Metrics {
		value := r.value(m.Name, func(v float64) string { return Value(m.Unit, v) })
		rows = append(rows, row{Name: m.Name, Value: value, About: m.About})
	}
	return rows
}

// formatTime formats a point in time, in UTC.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Failed returns the number of assertions that do not hold, for the template.
func (d *pageData) Failed() (n int) {
	for _, a := range d.Assertions {
		if !a.Holds {
			n++
		}
	}
	return n
}

// Ran returns how long the run took, for the template.
func (d *pageData) Ran() string { return d.ran() }

// toFloat converts a number of any type.
func toFloat(n any) float64 {
	switch n := n.(type) {
	case int:
		return float64(n)
	case int64:
		return float64(n)
	case uint64:
		return float64(n)
	}
	return 0
}

// Remark says why a failed assertion may have failed, for the template.
func (d *pageData) Remark(a Assertion) string { return d.remark(&a) }
