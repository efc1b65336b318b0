package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/sim/scenario"
)

// noteDifferences adds notes about what makes the figures hard to compare.
func (c *Comparison) noteDifferences() {
	c.noteTooFew()
	c.note("the scenarios differ", func(r *Report) string { return r.Scenario })
	c.note("the plans differ", func(r *Report) string { return short(r.Plan) })
	c.note("the machines differ", func(r *Report) string { return r.Build.machine() })
	c.note("Go differs", func(r *Report) string { return r.Build.Go })
	c.note("some were interrupted", ended)
	c.noteMixed("the runs of a side are of several revisions", func(r *Report) string { return r.Build.revision() })
	c.noteSome("invariants are broken in", func(r *Report) bool { return len(r.Broken) > 0 })
	c.noteSome("the machine was disturbed in", (*Report).Disturbed)
	c.noteDuplicates()
}

// noteTooFew adds a note if there are too few runs to tell a change from noise.
func (c *Comparison) noteTooFew() {
	b, a := len(c.Before), len(c.After)
	switch {
	case canTell(b, a):
	case b == 1 && a == 1:
		c.Notes = append(c.Notes, fmt.Sprintf("one run of each side cannot tell a change from noise: compare %d or more of each", runsNeeded()))
	default:
		c.Notes = append(c.Notes, fmt.Sprintf("%s before and %s after cannot tell a change from noise: compare %d or more of each", runs(b), runs(a), runsNeeded()))
	}
}

func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// note adds a note if a property of the runs differs between the sides.
func (c *Comparison) note(what string, fact func(*Report) string) {
	before, after := facts(c.Before, fact), facts(c.After, fact)
	if !slices.Equal(before, after) {
		c.Notes = append(c.Notes, fmt.Sprintf("%s: %s before, %s after", what, listed(before), listed(after)))
	}
}

// noteMixed adds a note if a property differs between the runs of a side.
func (c *Comparison) noteMixed(what string, fact func(*Report) string) {
	for _, side := range [][]*Report{c.Before, c.After} {
		if all := facts(side, fact); len(all) > 1 {
			c.Notes = append(c.Notes, what+": "+listed(all))
		}
	}
}

// facts returns the different values of a property, sorted.
func facts(runs []*Report, fact func(*Report) string) (all []string) {
	for _, r := range runs {
		all = append(all, fact(r))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// factsShown is how many values of a property are listed.
const factsShown = 3

func listed(all []string) string {
	if more := len(all) - factsShown; more > 0 {
		all = append(slices.Clone(all[:factsShown]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, " and ")
}

func short(hash string) string { return hash[:min(12, len(hash))] }

func ended(r *Report) string {
	if r.Interrupted {
		return "interrupted"
	}
	return "complete"
}

// machine describes the machine on which a run's speed depends.
func (b Build) machine() string {
	return strings.TrimPrefix(fmt.Sprintf("%s, %d of %d CPUs, %s/%s", b.CPU, b.Procs, b.CPUs, b.OS, b.Arch), ", ")
}

// revision describes the revision of the program.
func (b Build) revision() string {
	switch {
	case b.Revision == "":
		return "an unknown revision"
	case b.Modified:
		return short(b.Revision) + ", modified"
	}
	return short(b.Revision)
}

// noteSome adds a note about runs whose figures mean little.
func (c *Comparison) noteSome(what string, is func(*Report) bool) {
	if before, after := count(c.Before, is), count(c.After, is); before+after > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%s %d of %s before, in %d of %s after",
			what, before, runs(len(c.Before)), after, runs(len(c.After))))
	}
}

// noteMissing adds a note about metrics that only some of the runs have.
func (c *Comparison) noteMissing() {
	all := slices.Concat(c.Before, c.After)
	var names []string
	for _, m := range scenario.Metrics {
		if slices.ContainsFunc(all, func(r *Report) bool { return has(r, m) }) && !measuredBy(all, m) {
			names = append(names, m.Name)
		}
	}
	if len(names) > 0 {
		c.Notes = append(c.Notes, "only some runs have, so that it is not compared: "+strings.Join(names, ", "))
	}
}

// noteDuplicates adds a note about a run that occurs twice, as when a file is given by two
// names: the runs would look more similar than they are.
func (c *Comparison) noteDuplicates() {
	type identity struct {
		plan    string
		started int64
	}
	seen := map[identity]bool{}
	for _, r := range slices.Concat(c.Before, c.After) {
		id := identity{r.Plan, r.Started.UnixNano()}
		if seen[id] && !r.Started.IsZero() {
			c.Notes = append(c.Notes, "the run of "+formatTime(r.Started)+" is there more than once")
		}
		seen[id] = true
	}
}

// count returns the number of runs for which is returns true.
func count(runs []*Report, is func(*Report) bool) (n int) {
	for _, r := range runs {
		if is(r) {
			n++
		}
	}
	return n
}

// verdicts compares how often each assertion holds that both sides have.
func (c *Comparison) verdicts() {
	var seen []string
	for _, r := range c.After {
		for _, a := range r.Assertions {
			if !slices.Contains(seen, a.Text) {
				seen = append(seen, a.Text)
				c.verdict(a.Text)
			}
		}
	}
}

func (c *Comparison) verdict(assertion string) {
	held, of := holds(c.Before, assertion)
	holding, made := holds(c.After, assertion)
	switch {
	case of == 0 || held*made == holding*of:
	case of > 1 || made > 1:
		c.Verdicts = append(c.Verdicts, fmt.Sprintf("%s held in %d of %s, and now in %d of %d", assertion, held, runs(of), holding, made))
	case holding == 1:
		c.Verdicts = append(c.Verdicts, assertion+" holds now")
	default:
		c.Verdicts = append(c.Verdicts, assertion+" no longer holds")
	}
}

// holds returns in how many runs the assertion holds, and how many runs have it.
func holds(runs []*Report, assertion string) (held, made int) {
	with := func(is func(Assertion) bool) func(*Report) bool {
		return func(r *Report) bool { return slices.ContainsFunc(r.Assertions, is) }
	}
	held = count(runs, with(func(a Assertion) bool { return a.Text == assertion && a.Holds }))
	made = count(runs, with(func(a Assertion) bool { return a.Text == assertion }))
	return held, made
}
