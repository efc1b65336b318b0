package scenario_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/watchmill/watchmill/sim/scenario"
)

// The files in testdata/text have scenarios in YAML with the expected output of a
// command:
//
//	lint                 the errors, with line and column, or "fine"
//	explain [small] [seed=n]
//	                     the plan, as sim explain prints it
//	holds op=list n=8    for which of the first n calls of an operation the
//	                     condition of the first fault holds
//	check                each assertion (a line of the input), understood
//
// They have a directory of their own because go test -fuzz writes to testdata/fuzz.
func TestParse_ScenariosInText(t *testing.T) {
	datadriven.Walk(t, "testdata/text", func(t *testing.T, file string) {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "lint":
				return lint(d.Input)
			case "explain":
				return explain(t, d)
			case "holds":
				return holds(t, d)
			case "check":
				return check(d.Input)
			}
			d.Fatalf(t, "no command %q", d.Cmd)
			return ""
		})
	})
}

func lint(input string) string {
	if _, err := scenario.Parse("s.yaml", []byte(input)); err != nil {
		return err.Error() + "\n"
	}
	return "fine\n"
}

func explain(t *testing.T, d *datadriven.TestData) string {
	s, err := scenario.Parse("s.yaml", []byte(d.Input))
	if err != nil {
		return err.Error() + "\n"
	}
	options := scenario.Options{Small: d.HasArg("small")}
	if d.HasArg("seed") {
		d.ScanArgs(t, "seed", &options.Seed)
	}
	plan, err := s.Resolve(options)
	if err != nil {
		return err.Error() + "\n"
	}
	text, err := plan.Explain()
	if err != nil {
		return err.Error() + "\n"
	}
	_, body, _ := strings.Cut(text, "\n") // the first line has the hash
	return body
}

func holds(t *testing.T, d *datadriven.TestData) string {
	var op string
	var n int
	d.ScanArgs(t, "op", &op)
	d.ScanArgs(t, "n", &n)
	s, err := scenario.Parse("s.yaml", []byte("watchers: [{}]\nfaults: [{kind: fail, when: "+strings.TrimSpace(d.Input)+"}]"))
	if err != nil {
		return err.Error() + "\n"
	}
	plan, err := s.Resolve(scenario.Options{})
	if err != nil {
		return err.Error() + "\n"
	}
	var struck []string
	for i := range n {
		if plan.Faults[0].When.Holds(scenario.Operation(op), uint64(i)) {
			struck = append(struck, strconv.Itoa(i))
		}
	}
	if struck == nil {
		return "none\n"
	}
	return strings.Join(struck, " ") + "\n"
}

func check(input string) string {
	var out strings.Builder
	for line := range strings.Lines(input) {
		line = strings.TrimSuffix(line, "\n")
		c, err := scenario.Assertion(line).Check()
		var wrong *scenario.Error
		switch {
		case errors.As(err, &wrong) && strings.HasPrefix(wrong.Fix, "there are lost,"):
			fmt.Fprintf(&out, "%s: %s; (a list of them)\n", line, wrong.Problem)
		case err != nil:
			fmt.Fprintf(&out, "%s: %v\n", line, err)
		case c.Start:
			fmt.Fprintf(&out, "%s: %s %s at the start\n", line, c.Metric.Name, c.Compare)
		case c.Group != "":
			fmt.Fprintf(&out, "%s: %s of %s %s %v, in %s\n", line, c.Metric.Name, c.Group, c.Compare, c.Limit, c.Metric.Unit)
		default:
			fmt.Fprintf(&out, "%s: %s %s %v, in %s\n", line, c.Metric.Name, c.Compare, c.Limit, c.Metric.Unit)
		}
	}
	return out.String()
}
