// Package inspect shows what engines, informers and controllers are doing: a page that is
// live, and the same as JSON. It answers "which watch is slow?" first.
//
//	mux.Handle("/debug/watchmill/", inspect.Handler(host))
//
//	engine.Host             ◀── Engines, Stats, Watches, Ends, Mailboxes ──┐
//	informer.SharedInformer ◀── Stats, Handlers ───────────────────────── State
//	controller.Controller   ◀── Stats ─────────────────────────────────────┘│
//	                                                                        │
//	GET …/        the page: one file, light and dark, also on a phone
//	GET …/state   a State as JSON
//	GET …/events  a State a second, as server-sent events
//
// # Safety
//
// It only reads, and answers GET and HEAD alone. Names of watches, selectors and errors
// are shown; objects are not. The page runs no script but its own and loads nothing
// from elsewhere.
//
// Requests must come from this machine, and their Host header must name it. So neither
// another machine reads the page nor, through the user's browser, a page of another site
// (DNS rebinding). If a proxy authorises requests, name its host in [Options].
// [ListenAndServe] listens on loopback only, and closes connections beyond 32, so that no other user of
// the machine takes the files that the process may have open.
//
// # Closing
//
// A page that is open holds up neither the Close of a [Server] nor the Shutdown of an [http.Server] that it is
// mounted in: its stream ends then.
//
// # Cost
//
// Nothing while no request runs. Each state takes about a microsecond per watch and handler,
// and holds the [MaxWatches] that are the furthest behind.
package inspect
