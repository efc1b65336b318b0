package report_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/watchmill/watchmill/sim/report"
)

// There are four runs of each side. The p99 has doubled; the heap has changed by no
// more than it does from run to run.
func ExampleCompare() {
	run := func(p99, heap float64) *report.Report {
		return &report.Report{Scenario: "kubelets", Metrics: map[string]float64{"p99": p99, "heap": heap}}
	}
	before := []*report.Report{run(0.010, 50<<20), run(0.011, 51<<20), run(0.012, 52<<20), run(0.013, 53<<20)}
	after := []*report.Report{run(0.020, 53<<20), run(0.022, 52<<20), run(0.024, 51<<20), run(0.026, 50<<20)}

	comparison, err := report.Compare(before, after)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range comparison.Changes {
		fmt.Printf("%s: %s, p=%.2f\n", c.Metric.Name, c.Evidence, c.P)
	}
	// Output:
	// p99: changed, p=0.03
	// heap: noise, p=1.00
}

func ExampleReadJSON() {
	_, err := report.ReadJSON(strings.NewReader(`{"schema": "watchmill.sim/0"}`))
	fmt.Println(err)
	// Output:
	// a report of another version: "watchmill.sim/0", and this program reads "watchmill.sim/1"
}

func ExampleReport_WriteJSON() {
	r := &report.Report{Schema: report.Schema, Scenario: "kubelets", Metrics: map[string]float64{"p99": 0.0123}}
	var file strings.Builder
	if err := r.WriteJSON(&file); err != nil {
		fmt.Println(err)
		return
	}
	back, err := report.ReadJSON(strings.NewReader(file.String()))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(back.Scenario, report.Seconds(back.Metrics["p99"]))
	// Output:
	// kubelets 12.3ms
}

func ExampleReport_WriteText() {
	r := &report.Report{
		Scenario: "kubelets", Load: 20, Took: 20.5, Groups: []report.Group{{Kind: "watchers", Name: "kubelet"}},
		Assertions: []report.Assertion{{Text: "lost = 0", Value: 2}},
	}
	var file strings.Builder
	if err := r.WriteText(&file); err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(file.String()) {
		if strings.HasPrefix(line, "took") || strings.HasPrefix(line, "FAILED") {
			fmt.Print(line)
		}
	}
	// Output:
	// took       20s of load, 20.5s until watchers had their last event
	// FAILED     lost = 0                 it is 2
}

func ExampleReport_OK() {
	r := &report.Report{Assertions: []report.Assertion{{Text: "lost = 0", Value: 2}}}
	fmt.Println(r.OK(), r.Assertions[0].Shown())
	// Output:
	// false 2
}

func ExampleReport_WriteHTML() {
	r := &report.Report{Scenario: "kubelets"}
	f, err := os.CreateTemp("", "*.html")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(f.Name())
	fmt.Println(r.WriteHTML(f), f.Close())
	// Output:
	// <nil> <nil>
}
