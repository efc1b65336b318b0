// Package dispatcher is the actor between the watchCache and the watchers. It
// knows who is interested in what, who has caught up and who is stalled, and
// it supervises: whoever ends, for whatever reason, leaves through it.
//
//	watchCache ──Committed, Register──▶ dispatcher          (one FIFO)
//	                                     │ reads the new part of the window once
//	                                     ├─▶ interest: which streams may care? evaluate each once, append
//	                                     ├─▶ overrun: whom has the window left behind? backlog, conflate
//	                                     ├─▶ Feed: publish what the watchers may read
//	                                     └─▶ wake those who wait; call stalled those too far behind
//	watcher ──Recovered──▶ dispatcher
//	clock ──Tick, BudgetSpent, DeadlineDue──▶ dispatcher
//	supervision ──ChildStopped──▶ dispatcher: the one place where a watch leaves every index
//
// The dispatcher never waits for a watcher and holds no events for any: a
// watch that lags reads the window when its consumer comes back.
//
// # Decisions
//
// What it decides is plain code without actors, each in a file of its own and
// tested by scenarios in testdata: interest (who may care for an event), wheel
// (when a bookmark is due) and budget (how long slow watchers may hold on
// under the Terminate policy).
//
// # Failure
//
// A panic in a watcher's handler stops that watcher. If the dispatcher itself
// fails it is resumed: its streams restart, so that watchers read the round in
// question from the window, each from its own position.
package dispatcher
