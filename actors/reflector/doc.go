// Package reflector follows a source: it lists, watches, resumes, lists again
// when it must, and tells one sink what happened, in order, with nothing left
// out and nothing repeated that it could tell.
//
//	                       List pages, Batches
//	backend.ListerWatcher ─────────────────────▶ Reflector ──Offer──▶ Sink
//	         │    ▲                               │  ▲  ▲              │
//	         │    └── one call at a time ─────────┘  │  └─Room, Relist─┘
//	         └─────── Notify: ask again ─────────────┘
//
// What the sink sees is a sequence of [Update]s:
//
//	Replace ─▶ (Changes | Progress)* ─▶ Replace ─▶ ...      Unavailable anywhere
//
// A [Replace] is the whole state at one revision. [Changes] and [Progress] go on
// from the revision of the update before, whatever happened to the watch in
// between: a watch that breaks is resumed after the last revision, without a
// list. An [Unavailable] comes once per outage, which the next [Replace] or
// [Progress] ends.
//
// # Inside
//
//	         message            input              effects
//	anyone ──────────▶ actor ──────────▶ machine ──────────▶ actor ──▶ source, sink, clock
//	                     ▲                                      │
//	                     └───────── answer, wake, pull ─────────┘
//
// The machine decides and is plain data (machine.go, machinelist.go, audit.go,
// backoff.go); the actor feeds it and does what it wants (reflector.go,
// request.go). The scenarios in testdata are the machine's specification.
//
// # When it lists
//
// At the start, and for every [Reason] after [Started]: the changes after the
// last revision are gone from the source, or cannot be believed, or watches
// bring nothing. A batch that does not start where the one before ended, an
// event out of order, and on contiguous storage any missing revision, is a loss;
// what was sound before it is still told. Pages must all be of one revision; if
// one expires midway the list starts over, once and at once, in one piece.
//
// A list that is older than what was told before is refused once, since it may
// come from a replica that lags. If the next one is older too, or the source
// itself has said that it went back, it is believed: the Replace then has a
// smaller revision, and its Reason is [Repeated] or [Future].
//
// # Coming back
//
// There is one budget of attempts, [Backoff], for all ways back to the source:
// after a list failed, a watch was refused, broke, expired, was found to be
// wrong or was closed cleanly, after a demand to relist, and after a restart.
// Every one of them waits, for a growing, jittered delay. Only a watch that
// stayed open for HealthyAfter fills the budget up again, because everything
// less can be had from a source that is failing: a list that succeeds, a watch
// that opens, even one that delivers an event before it closes.
//
// # Backpressure
//
// The sink never blocks the Reflector nor is blocked by it. While it has no
// room, the Reflector holds the update, and pulls, lists and opens nothing; the
// source keeps the history meanwhile. If it cannot keep it long enough, the
// watch expires, and the state is listed.
//
// # Concurrency
//
// A Reflector is an actor on the system's pool and has no goroutine of its own.
// Sink.Offer and Config's functions are called in its turns. Only for a source
// that blocks does it have a child, on the executor for blocking actors, for
// its List and Watch. Source calls never overlap, and Stop cancels the one in
// progress. A source that ignores its context holds up Stop, and nothing else
// can: so it can hold up the end of the parent.
//
// # Supervision
//
// Panics in the source are errors: contained, reported, and retried with the
// budget. A panic in the sink is a failure of the Reflector, about which its
// parent decides. Restarted, it lists (with a delay) and the sink gets a
// Replace; its [Stats] go on. Contained panics are [usercode.PanicError]s.
//
// # Kubernetes
//
// The file docs/parity.md says of each behaviour of client-go's Reflector which
// test holds it here, or why it does not apply.
package reflector
