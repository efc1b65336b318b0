package main

// simCommand is the commands under watchmill sim.
type simCommand struct {
	List    simListCommand    `cmd:"" help:"List the shipped scenarios, and what each is about."`
	Run     simRunCommand     `cmd:"" help:"Put a scenario's load on an engine, in real time, and report."`
	Lint    simLintCommand    `cmd:"" help:"Check a scenario without running it, and say where it is wrong."`
	Explain simExplainCommand `cmd:"" help:"Print a scenario with all defaults filled in, and its timeline; run nothing."`
	Compare simCompareCommand `cmd:"" help:"Say what changed between runs, by how much, and whether by more than noise."`
	Explore exploreCommand    `cmd:"" help:"Play random scenarios in random interleavings on virtual time, and judge them."`
}

// Help returns the text that --help adds.
func (*simCommand) Help() string {
	return `A scenario is a YAML file that describes objects, the load of writers, watchers and readers, the faults and when they happen, and what must hold at the end. Some are shipped. To see one, and then its load:

    watchmill sim explain --small kubelets
    watchmill sim run --small --html run.html kubelets

To write your own, begin with what explain prints: it is a scenario itself.`
}
