// Package faulty is a backend for tests: it passes all calls on to another
// backend, and lets them go wrong as it is told.
//
//	engine ──call──▶ rule 1 ──▶ rule 2 ──▶ … ──▶ the backend beneath
//	       ◀─result─ rule 1 ◀── rule 2 ◀── … ◀──
//	                    │
//	                    └─ a Rule: which calls (Ops, Under, When, Chance, Skip, Times)
//	                       and what happens to them (Do: an Action)
//
// [Backend.Add] makes a rule hold, [Fault.Remove] ends it, [Fault.Hits] says how
// many calls it has struck. A call passes through the rules that fit it in the
// order in which they were added, so the first one sees the call first and its
// result last.
//
//	storage := faulty.New(memory, faulty.Options{})
//	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 3, Do: faulty.Fail(nil)})   // the next three lists fail
//	storage.Add(faulty.Rule{Ops: faulty.Writes, Chance: 0.01, Do: faulty.Delay(time.Second)})   // one write in a hundred is slow
//	silent := storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})      // watches deliver nothing
//	silent.Remove()                                                                             // … until now
//
// An [Action] is a function around a call, so a test can write its own: to count
// and to observe calls, to change what they ask for or return, to make them fail
// after they have taken effect.
//
// What happens to watches that run already is not a matter of calls:
// [Backend.BreakWatches] and [Backend.ExpireWatches] end them,
// [Backend.RepeatLast] makes them repeat themselves, and [Backend.Replace] puts another backend beneath, as when storage is restored
// from a backup.
//
// # Concurrency
//
// Everything is safe for concurrent use. The package starts no goroutine. What
// [Rule].Chance draws depends on the seed, the rule and the number of calls that
// fit it before, and so not on other calls.
package faulty
