// Package audit finds out which events watchers have lost, and which they should
// not have seen.
//
//	storage ──Note, Gap──▶ Ledger ──▶ Expect: for each selection, the revisions that
//	                                  its watchers must see, and the
//	                                  states between them ──────────────────────────┐
//	                                                                                ▼
//	watcher ──See, Settle──▶ Trail: stretches of revisions, and states that it was
//	                                given, as numbers and sums ─────────────────▶ Verdict
//
// A watcher must have seen all that is for it, in order, each once, in every
// stretch of its trail. Between stretches it knows that it missed something:
// it had to list, or events were conflated. Watchers with conflated
// events keep their state, which must be the newest state in the end.
package audit
