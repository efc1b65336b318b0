package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/watchmill/watchmill/sim/report"
)

// errReports is the error of a comparison whose reports cannot be read.
var errReports = errors.New("cannot compare")

// simCompareCommand has the arguments of watchmill sim compare.
type simCompareCommand struct {
	Runs comparedRuns `arg:"" help:"Two runs, as written by watchmill sim run --json; or two directories of runs; or several runs of each side: A1.json A2.json -- B1.json B2.json. Four or more of each side can tell a change from noise."`
}

// Help returns the text that --help adds.
func (simCompareCommand) Help() string {
	return `For every metric that differs it shows the median, how far the runs of a side are apart, and whether the sides differ by more than noise, by the Mann-Whitney U test.

The exit status is

    0  if the runs could be compared, whatever the differences
    1  if the comparison could not be written
    2  if a file is missing, torn, not a report, or from another version`
}

// Run prints the differences between the runs, and whether they are more than noise.
func (c *simCompareCommand) Run(to *streams) error {
	before, err := readReports(c.Runs.before)
	if err != nil {
		return err
	}
	after, err := readReports(c.Runs.after)
	if err != nil {
		return err
	}
	comparison, err := report.Compare(before, after)
	if err != nil {
		return fmt.Errorf("%w: %w", errReports, err)
	}
	return comparison.WriteText(to.stdout)
}

// comparedRuns are the files and directories of both sides.
type comparedRuns struct{ before, after []string }

// Decode takes all arguments, to find the -- between the sides, which the parser would
// otherwise only take as the end of the flags.
func (r *comparedRuns) Decode(ctx *kong.DecodeContext) error {
	var names []string
	for next := ctx.Scan.Peek(); next.IsValue() || next.Value == "--"; next = ctx.Scan.Peek() {
		names = append(names, ctx.Scan.Pop().String())
	}
	between := slices.Index(names, "--")
	switch {
	case between < 0 && len(names) == 2:
		r.before, r.after = names[:1], names[1:]
	case between > 0 && between+1 < len(names) && !slices.Contains(names[between+1:], "--"):
		r.before, r.after = names[:between], names[between+1:]
	default:
		return errors.New("name two runs or directories, or several on both sides of a --: A1.json A2.json -- B1.json B2.json")
	}
	return nil
}

// readReports reads files, and all reports in directories.
func readReports(names []string) (reports []*report.Report, err error) {
	for _, name := range names {
		files, err := reportFiles(name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errReports, err)
		}
		for _, file := range files {
			r, err := readReport(file)
			if err != nil {
				return nil, err
			}
			reports = append(reports, r)
		}
	}
	return reports, nil
}

// reportFiles returns the .json files of a directory, in the order of names, or the file
// itself.
func reportFiles(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: there is no .json file in it", name)
	}
	return files, nil
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
