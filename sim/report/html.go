package report

import (
	_ "embed" // for the page
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/watchmill/watchmill/sim/scenario"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"seconds": Seconds, "memory": Memory, "number": Number[float64],
	"count": func(n any) string { return Number(toFloat(n)) },
	"short": short, "when": stamp,
	"lasts": func(f Fault) bool { return f.Until > f.At },
	"span":  func(f Fault) string { return Seconds(f.Until - f.At) },
}).Parse(pageSource))

// pageData is what the page shows.
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
	// Bad: it must not be so.
	Bad bool
}

// row is one metric.
type row struct{ Name, Value, About string }

// WriteHTML writes the report as one page. It has everything in it: no script,
// nothing from elsewhere; and it is readable in light and dark.
func (r *Report) WriteHTML(w io.Writer) error {
	return page.Execute(w, &pageData{Report: r, Charts: r.charts(), Verdict: r.verdict(), Tiles: r.tiles(), Rows: r.rows()})
}

// verdict says in a word how the run went: the class of its badge.
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
		{"median latency", Seconds(m["p50"]), false}, {"latency, 99th percentile", Seconds(m["p99"]), false},
		{"writes", Number(m["writes/s"]) + "/s", false}, {"deliveries", Number(m["deliveries/s"]) + "/s", false},
		{"events lost", Number(m["lost"]), m["lost"] > 0}, {"heap at most", Memory(m["heap"]), false},
	}
}

func (r *Report) rows() (rows []row) {
	for _, m := range scenario.Metrics {
		rows = append(rows, row{Name: m.Name, Value: Value(m.Unit, r.Metrics[m.Name]), About: m.About})
	}
	return rows
}

// stamp prints when something was.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Failed is how many assertions do not hold, for the page.
func (d *pageData) Failed() (n int) {
	for _, a := range d.Assertions {
		if !a.Holds {
			n++
		}
	}
	return n
}

// Ran says what the run was, and for how long, for the page.
func (d *pageData) Ran() string { return d.ran() }

// toFloat makes a number of any kind one that Number prints.
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

// Remarks is what there is to say about a group beside its figures.
func (g Group) Remarks() string { return g.remarks() }

// Remarks is what there is to say about a watcher beside its figures.
func (w Watcher) Remarks() string { return strings.TrimSpace(w.remarks()) }

// Shown is the value in the unit of the metric that is asserted.
func (a Assertion) Shown() string { return a.value() }
