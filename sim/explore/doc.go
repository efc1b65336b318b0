// Package explore plays an engine through random scenarios in random
// interleavings, on virtual time and on one goroutine, and judges all that it
// shows. A seed is an execution: what it finds, it finds again.
//
//	seed ──▶ Draw ──▶ Scenario: steps, as data        ┌──────────── World ───────────────┐
//	  │                  │   ▲ shrink: leave out      │ storage ──▶ engine ──▶ watches   │
//	  │                  ▼   │ steps while it fails   │    │          ▲ │         │      │
//	  └──▶ scheduler ──▶ play ──────────────────────▶ │  history    clock         records│
//	       whose turn is next                         └────┬────────────────────────┬────┘
//	                                                       └──────▶ judge ◀─────────┘
//	                                                       trace: everything, hashed
//
// # What is explored
//
// The scheduler is the executor of every actor, and runs one turn at a time. A
// step of the scenario does something from outside: see [Verb]. Between steps,
// and while a call waits, the engine has a drawn number of turns, so a scenario
// meets the engine in the middle of everything. In particular:
//
//   - another step may happen while the call of a watch or a read is on its way
//     ([Step].Meanwhile);
//   - one of the engine's actors may be slow, so that its mailbox fills while
//     others get ahead of it ([Slow]);
//   - storage may close, lose or expire watches, lose or repeat events, fail or
//     take its time, forget its history, go back ([Rewind]), and come back with
//     other writes at revisions that were known ([Rewrite]), beneath watches,
//     informers and object caches;
//   - the context of a call, or of a watch, may end ([Leave]);
//   - objects may expire ([Lease]), and the clock may be corrected ([Jump]);
//   - storage may have several changes at one revision ([Transact]), in a scenario
//     without lists that would have to guess at numbers;
//   - an informer with a handler, which may fall behind, and an object cache may follow
//     the engine, and are held to the same history;
//   - watches, reads and writes may be by an engine without a cache on the same storage;
//   - two writers may write one key, one in the middle of the other's write ([Race]);
//   - after the end another engine may start on empty storage ([Scenario].Again):
//     it must refuse revisions of the first.
//
// A turn is not interrupted. What consumers on other goroutines see between two
// writes of one turn is for the engine's tests under the race detector.
//
// # How it is judged
//
// Storage is a backend in memory with faults. The writes that it acknowledges, and its
// deletions of what has expired, are the history, to which package judge compares
// watches and reads. The history also says which changes the engine received as events:
// only those must be shown one by one. If storage goes back, the history forks: a watch
// that ended before is judged by the old history, one that goes on must fit the new one
// from its start. An informer or an object cache may show the old history until it has
// noticed, and from then on only the new one.
//
// # What is not judged
//
// Other consumers of the engine's Source than an informer and an object cache have no
// judge: [Config].Attach can start them and register invariants of them.
//
// # How to replay
//
// A finding names its seed. [Config].From with Seeds: 1, or on the command line
//
//	watchmill sim explore --seed 42
//
// plays it again, step for step, as long as the program is the same; the hash of
// the report says whether it was. A change to what is drawn gives a seed another
// scenario. To keep what was found, keep the finding's [Scenario], which is data,
// as Go or as JSON, and [Play] it. Its interleaving is drawn from its Seed, so a
// change of the engine may give it another one: play it with some more.
//
// The scenario is drawn before anything happens and refers to nothing that
// happens, so steps can be left out of one that fails, with the same seed for
// the interleaving, until the shortest remains.
package explore
