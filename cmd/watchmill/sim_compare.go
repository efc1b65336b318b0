package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/watchmill/watchmill/sim/report"
)

// errReports ends a comparison of what cannot be read.
var errReports = errors.New("cannot compare")

// simCompareCommand is the flags of watchmill sim compare.
type simCompareCommand struct {
	Before string `arg:"" placeholder:"A.json" help:"The run to compare with, as written by watchmill sim run --json."`
	After  string `arg:"" placeholder:"B.json" help:"The run to compare."`
}

// Run prints what changed, and by how much.
func (c *simCompareCommand) Run(t *terminal) error {
	before, err := readReport(c.Before)
	if err != nil {
		return err
	}
	after, err := readReport(c.After)
	if err != nil {
		return err
	}
	return report.Compare(before, after).WriteText(t.stdout)
}

func readReport(name string) (*report.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errReports, err)
	}
	defer f.Close()
	r, err := report.ReadJSON(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errReports, name, err)
	}
	return r, nil
}
