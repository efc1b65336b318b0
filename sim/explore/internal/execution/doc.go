// Package execution makes everything that happens in a world one execution, which a seed
// determines: on one goroutine, on virtual time, and with a trace of all of it.
//
//	actors' turns ──────────┐
//	ends of contexts: Caller├──▶ Scheduler ──draws──▶ a turn runs ──▶ Trace ──▶ hash, lines
//	goroutines of channels ─┘        ▲                                 ▲
//	                                 │ a call waits: Run               │
//	timers ─────────▶ Clock ─────────┴─────────────────────────────────┘
//
// None of it is safe for concurrent use.
package execution
