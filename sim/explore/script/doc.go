// Package script has the scenarios of package explore as data: it describes, draws,
// validates and shortens them, and plays none.
//
//	seed ──▶ Draw ──▶ Scenario ──▶ explore.Play: does it break an invariant?
//	                  │  ▲   ▲                        │
//	  JSON, Go ◀──────┘  │   └──────── Shrink ◀───────┘ leaves out steps while it does
//	      └── Validate ──┘
//
// A [Scenario] is a [Setup] and a list of steps; what a [Step] does is its [Verb]. It names
// watches by number and says how keys and values are drawn, and never uses the result of
// another step. So a scenario from which steps were left out is a scenario, too.
package script
