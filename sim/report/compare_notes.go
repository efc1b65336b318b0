package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/sim/scenario"
)

// notes says what makes the figures hard to compare.
func (c *Comparison) notes() {
	c.single()
	c.note("the scenarios differ", func(r *Report) string { return r.Scenario })
	c.note("the plans differ", func(r *Report) string { return short(r.Plan) })
	c.note("the machines differ", func(r *Report) string { return r.Build.machine() })
	c.note("Go differs", func(r *Report) string { return r.Build.Go })
	c.note("some were interrupted", ended)
	c.mixed("the runs of a side are of several revisions", func(r *Report) string { return r.Build.revision() })
	c.broken()
	c.twice()
}

// single says so if there are too few runs to tell anything from noise.
func (c *Comparison) single() {
	b, a := len(c.Before), len(c.After)
	switch {
	case canTell(b, a):
	case b == 1 && a == 1:
		c.Notes = append(c.Notes, fmt.Sprintf("one run of each side cannot tell a change from noise: compare %d or more of each", enough()))
	default:
		c.Notes = append(c.Notes, fmt.Sprintf("%s before and %s after cannot tell a change from noise: compare %d or more of each", runs(b), runs(a), enough()))
	}
}

func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// note mentions a fact about runs that is not the same on both sides.
func (c *Comparison) note(what string, fact func(*Report) string) {
	before, after := facts(c.Before, fact), facts(c.After, fact)
	if !slices.Equal(before, after) {
		c.Notes = append(c.Notes, fmt.Sprintf("%s: %s before, %s after", what, listed(before), listed(after)))
	}
}

// mixed mentions a fact that is not the same for all runs of a side.
func (c *Comparison) mixed(what string, fact func(*Report) string) {
	for _, side := range [][]*Report{c.Before, c.After} {
		if all := facts(side, fact); len(all) > 1 {
			c.Notes = append(c.Notes, what+": "+listed(all))
		}
	}
}

// facts returns the different values of a fact, sorted.
func facts(runs []*Report, fact func(*Report) string) (all []string) {
	for _, r := range runs {
		all = append(all, fact(r))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// factsShown is how many values of a fact are listed.
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

// machine is what a run's speed depends on.
func (b Build) machine() string {
	return strings.TrimPrefix(fmt.Sprintf("%s, %d of %d CPUs, %s/%s", b.CPU, b.Procs, b.CPUs, b.OS, b.Arch), ", ")
}

// revision names the program that was run.
func (b Build) revision() string {
	switch {
	case b.Revision == "":
		return "an unknown revision"
	case b.Modified:
		return short(b.Revision) + ", modified"
	}
	return short(b.Revision)
}

// broken mentions runs that broke an invariant: their figures mean little.
func (c *Comparison) broken() {
	isBroken := func(r *Report) bool { return len(r.Broken) > 0 }
	before, after := count(c.Before, isBroken), count(c.After, isBroken)
	if before+after > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("invariants are broken in %d of %s before, in %d of %s after",
			before, runs(len(c.Before)), after, runs(len(c.After))))
	}
}

// missing mentions metrics that only some of the runs have.
func (c *Comparison) missing() {
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

// twice mentions a run that is there twice, such as by two names of one file: it
// would make the runs look more alike than they are.
func (c *Comparison) twice() {
	type identity struct {
		plan    string
		started int64
	}
	seen := map[identity]bool{}
	for _, r := range slices.Concat(c.Before, c.After) {
		id := identity{r.Plan, r.Started.UnixNano()}
		if seen[id] && !r.Started.IsZero() {
			c.Notes = append(c.Notes, "the run of "+stamp(r.Started)+" is there more than once")
		}
		seen[id] = true
	}
}

// count returns of how many runs it is true.
func count(runs []*Report, is func(*Report) bool) (n int) {
	for _, r := range runs {
		if is(r) {
			n++
		}
	}
	return n
}

// verdicts compares how often assertions hold that both sides made.
func (c *Comparison) verdicts() {
	var told []string
	for _, r := range c.After {
		for _, a := range r.Assertions {
			if !slices.Contains(told, a.Text) {
				told = append(told, a.Text)
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

// holds returns in how many runs the assertion holds, of those that made it.
func holds(runs []*Report, assertion string) (held, made int) {
	with := func(is func(Assertion) bool) func(*Report) bool {
		return func(r *Report) bool { return slices.ContainsFunc(r.Assertions, is) }
	}
	held = count(runs, with(func(a Assertion) bool { return a.Text == assertion && a.Holds }))
	made = count(runs, with(func(a Assertion) bool { return a.Text == assertion }))
	return held, made
}
