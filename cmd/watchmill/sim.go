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

// Help is what --help says besides.
func (*simCommand) Help() string {
	return `A scenario is a YAML file that says which objects there are, who writes, watches and reads how much, what goes wrong when, and what must hold in the end. Some are shipped. To see one, and then its load:

    watchmill sim explain --small kubelets
    watchmill sim run --small --html run.html kubelets

To write your own, begin with what explain prints: it is a scenario itself.`
}
