package main

// simCommand is the commands under watchmill sim.
type simCommand struct {
	Run     simRunCommand     `cmd:"" help:"Put a scenario's load on an engine, in real time, and report."`
	List    simListCommand    `cmd:"" help:"List the shipped scenarios."`
	Lint    simLintCommand    `cmd:"" help:"Check a scenario, and say where it is wrong."`
	Explain simExplainCommand `cmd:"" help:"Print a scenario with all defaults filled in, and its timeline."`
	Compare simCompareCommand `cmd:"" help:"Say what changed between runs, by how much, and whether by more than noise."`
	Explore exploreCommand    `cmd:"" help:"Play random scenarios in random interleavings on virtual time, and judge them."`
}
