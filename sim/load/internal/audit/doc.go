// Package audit finds out which events watchers have lost, and which they should
// not have seen.
//
//	storage ──Note, Gap──▶ Ledger ──▶ Expect: for each selection, the revisions that
//	                                  everybody who selects so had to see, and the
//	                                  states between them ──────────────────────────┐
//	                                                                                ▼
//	watcher ──See, Settle──▶ Trail: stretches of revisions, and states that it was
//	                                given, as numbers and sums ─────────────────▶ Verdict
//
// A watcher must have seen all that is for it, in order, each once, in every
// stretch of its trail. Between stretches it was told that it misses something:
// it had to list, or events stood for several. Those who let events stand for
// several remember what they know, which must be the newest state in the end.
package audit
