// Package faulty is a backend for tests: it passes all calls to another backend
// and injects faults by rules.
//
//	engine ──call──▶ rule 1 ──▶ rule 2 ──▶ … ──▶ the underlying backend
//	       ◀─result─ rule 1 ◀── rule 2 ◀── … ◀──
//	                    │
//	                    └─ a Rule: which calls (Ops, Under, When, Chance, Skip, Times)
//	                       and what happens to them (Do: an Action)
//
// [Backend.Add] adds a rule, [Fault.Remove] removes it, [Fault.Hits] counts the
// calls that it affected. A call passes through the matching rules in the order in
// which they were added, so the first one sees the call first and its result last.
//
//	storage := faulty.New(memory, faulty.Options{})
//	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Times: 3, Do: faulty.Fail(nil)})   // the next three lists fail
//	storage.Add(faulty.Rule{Ops: faulty.Writes, Chance: 0.01, Do: faulty.Delay(time.Second)})   // one write in a hundred is slow
//	silent := storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})      // watches deliver nothing
//	silent.Remove()                                                                             // … until now
//
// An [Action] is a function around a call. Tests can write their own: to count and
// observe calls, to change arguments or results, to fail calls after they have
// taken effect.
//
// Some faults are not calls: [Backend.BreakWatches] and [Backend.ExpireWatches]
// end running watches, [Backend.RepeatLast] makes them repeat an event, and
// [Backend.Replace] replaces the underlying backend, as when storage is restored
// from a backup.
//
// # Concurrency
//
// Everything is safe for concurrent use. The package starts no goroutine.
// [Rule].Chance depends only on the seed, the rule and the number of calls that
// matched the rule before.
package faulty
