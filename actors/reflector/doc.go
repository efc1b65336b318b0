// Package reflector follows a source: it lists, watches, resumes, and relists
// when it must. One sink receives every change in order; a loss or repetition
// by the source is detected and repaired by a relist.
//
//	                       List pages, Batches
//	backend.ListerWatcher ─────────────────────▶ Reflector ──Offer──▶ Sink
//	         │    ▲                               │  ▲  ▲              │
//	         │    └── one call at a time ─────────┘  │  └─Room, Relist─┘
//	         └─────── Notify: events are ready ──────┘
//
// The sink receives one [Update] after another:
//
//	Replace ─▶ (Changes | Progress)* ─▶ Replace ─▶ ...      Unavailable anywhere
//
// A [Replace] is the whole state at one revision. [Changes] and [Progress]
// continue from the revision of the previous update, even across watches: a
// watch that breaks is resumed after the last revision, without a list. An
// [Unavailable] is sent once per outage, which the next [Replace] or [Progress]
// ends.
//
// # Inside
//
//	         message            input              effects
//	sender ──────────▶ actor ──────────▶ machine ──────────▶ actor ──▶ source, sink, clock
//	                     ▲                                      │
//	                     └───────── answer, wake, pull ─────────┘
//
// The machine is a pure state machine that makes all decisions (machine.go,
// machine_list.go, warm.go, behind.go, audit.go, backoff.go); the actor feeds it messages and
// carries out its effects (reflector.go, request.go, progress.go). The scenarios in
// testdata/machine specify the machine.
//
// # When it lists
//
// It lists at the start, and again if it cannot go on from the last revision: the
// source no longer has the changes after it, they cannot be trusted, or watches end
// without events. A list can also be requested. Each case is a [Reason].
//
// Changes cannot be trusted after a loss: a batch that does not start where the
// previous one ended, an event out of order, or, on contiguous storage, a missing
// revision. Valid events before it are still delivered, up to the last revision that
// is certainly whole.
//
// All pages of a list must be of one revision. If one expires midway, the list is
// retried once, immediately, without paging. So is the past state that a warm start lists.
//
// A list that is older than the last update is refused once, since it may come
// from a replica that lags. If the next one is older too, or the source itself
// reported that it went back, it is accepted: the Replace then has a smaller
// revision, and its Reason is [Repeated] or, if the source does not know which storage
// it has, [Future].
//
// A source that was restored from a backup may have come to the same revision again,
// with other content. If it knows which storage it has (backend.Identifier), it is
// asked before each list and after the start of each watch: with another answer the
// watch is given up, and the list has the Reason [Restored]. A list of another storage is
// accepted at any revision and for whatever Reason, since that list may be the first to show
// the other storage. The StoreID of the Replace then differs from the one before.
//
// # Reconnecting
//
// One [Backoff] spaces all attempts, whether a list failed, a watch was refused or
// ended, a relist was requested, or the Reflector was restarted. The delay grows and is
// jittered. Only a watch that stayed open for HealthyAfter resets it: a failing source
// may well serve a list, open a watch, or deliver an event before it closes.
//
// # Backpressure
//
// Offer does not block. While the sink is full, the Reflector holds the update
// and makes no calls; the source keeps the history meanwhile. If it cannot keep
// it long enough, the watch expires and the Reflector lists.
//
// # Concurrency
//
// A Reflector is an actor on the system's pool and has no goroutine of its own.
// Sink.Offer and Config's functions are called in its turns. For a source that
// blocks, a child on the executor for blocking actors calls List and Watch.
// Source calls never overlap, and Stop cancels the one in progress. So does
// Config.CallTimeout, unless the source bounds its calls itself, as one does that can
// tell an answer that arrives slowly from one that does not arrive. Only a
// source that ignores its context can delay Stop, and with it the parent's.
//
// # Supervision
//
// A panic in the source is an error: contained, reported as a
// [*usercode.PanicError], and retried with backoff. One in the sink is a failure of the
// Reflector, which its parent handles. A restarted Reflector lists, after a
// delay, and its sink gets a Replace; its [Stats] continue.
//
// # Kubernetes
//
// docs/parity.md lists, for each behaviour of client-go's Reflector, the test
// that covers it here, or why it does not apply.
package reflector
