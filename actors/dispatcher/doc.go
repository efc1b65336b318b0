// Package dispatcher is the actor between the watchCache and the watches. It
// indexes the watches' filters, tracks which watches have caught up or are stalled,
// and supervises their actors: every watch that ends is removed here.
//
//	watchCache ──Committed, Register──▶ dispatcher          (one FIFO)
//	                                     │ reads the new part of the window once
//	                                     ├─▶ interest: which streams may match? evaluate each once, append
//	                                     ├─▶ window moved: which watches need what it drops? backlog, conflate
//	                                     ├─▶ Feed: publish what the watchers may read
//	                                     └─▶ wake waiting watches; mark those too far behind as stalled
//	watcher ──Recovered, Ended──▶ dispatcher: removes a watch that has ended from every index
//	engine ──Drain──▶ dispatcher: ends each watch that has everything
//	clock ──bookmarksDue, progressDue, budgetSpent, deadlineDue──▶ dispatcher
//
// The dispatcher waits for no consumer, and for the lock of a watch only while that examines
// some thousand objects. It queues no events: a watch that lags reads the window when its
// consumer asks for more.
//
// # Decisions
//
// The decisions are plain code without actors, tested by scenarios in testdata:
// interest (which watches may match an event), wheel (when a bookmark is due) and
// budget (how long slow watches may stay under the Terminate policy).
//
// # Failure
//
// A panic in a watcher's handler stops that watcher. If the dispatcher itself
// fails it is resumed: its streams restart, so that watchers read the round in
// question from the window, each from its own position.
package dispatcher
