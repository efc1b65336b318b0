// Package inspect shows what engines are doing: a page that is live, and the same
// as JSON. It answers "which watch is slow?" first.
//
//	mux.Handle("/debug/watchmill/", inspect.Handler(host))
//
//	engine.Host ◀── Engines, Stats, Watches, Ends, Mailboxes ── State
//	                                                             │
//	GET …/        the page: one file, light and dark, also on a phone
//	GET …/state   a State as JSON
//	GET …/events  a State a second, as server-sent events
//
// # Safety
//
// It only reads. It answers GET and HEAD alone, and only requests that come from
// this machine and whose Host header names it, so that neither another machine
// reads it nor, through the user's browser, a page of another site (DNS rebinding);
// name the host of a proxy that authorises requests in [Options]. The page runs
// no script but its own and loads nothing from elsewhere. [ListenAndServe] listens
// on loopback only. Names of watches, selectors and errors are shown; objects are
// not.
//
// # Cost
//
// Nothing while no request runs. Each state takes about a microsecond per watch,
// and holds the [MaxWatches] that are behind the longest.
package inspect
