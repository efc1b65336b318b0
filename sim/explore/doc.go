// Package explore plays an engine through random scenarios in random
// interleavings, on virtual time and on one goroutine, and judges what the engine
// shows. A seed determines the execution, so each finding is reproducible.
//
//	seed ──▶ script.Draw ──▶ Scenario: steps, as data ◀── script.Shrink: leave out steps
//	                            │                           ▲ while it fails
//	                            ▼                           │
//	                        world.Play ──▶ Outcome ──▶ Report, Finding
//	                        an engine, storage with faults, clients; judged by package judge
//
// # What is explored
//
// The scheduler is the executor of every actor, and runs one turn at a time. A
// step of the scenario acts on the engine or on storage from outside: see [script.Verb].
// Between steps, and while a call waits, the engine has a drawn number of turns, so
// steps happen while the engine's work is unfinished. In particular:
//
//   - another step may happen while a call that starts a watch or reads is under way
//     ([script.Step].Meanwhile);
//   - one of the engine's actors may be slow, so that its mailbox fills while
//     others get ahead of it ([script.Slow]);
//   - storage may close, lose or expire watches, lose or repeat events, fail to list, to watch,
//     to read or to write, be slow, and compact its history;
//   - storage may leave writes without an answer, which it has done, does some steps later or never
//     does ([script.LoseAnswers]);
//   - storage may go back ([script.Rewind]), and then have other writes at the same
//     revisions ([script.Rewrite]), beneath watches, informers and object caches: in half of
//     the scenarios without transactions, since less is known of an engine after that;
//   - users may call the engine when it has not noticed that yet, or has not recovered
//     ([script.Step].Unnoticed, [script.Recover]);
//   - a client may go on with a list after that, by a watch or by the next page, and must
//     not be served from another timeline ([script.WatchLastList], [script.NextPage]), even if
//     the next page is that of another engine on the same storage;
//   - a consumer may resume at the position, and at the checkpoint, that it had ([script.Resume]);
//   - the context of a call, or of a watch, may end ([script.Cancel]);
//   - a consumer's loop may be in the middle of a batch when anything else happens
//     ([script.Loop]);
//   - objects may expire ([script.Lease]), and the clock may be corrected ([script.Jump]);
//   - storage may have had changes before the engine starts ([script.Setup].Before), and may keep
//     its history, so that the engine begins with that ([script.Setup].KeepsHistory);
//   - storage may have several changes at one revision ([script.Transact]), in a scenario
//     in which the engine never lists again, since it would then have to invent
//     revisions for deletions;
//   - an informer with handlers and indexes, which may come later, and handlers may fall behind, and an
//     object cache may follow the engine, and are compared with the same history. What the informer shows by
//     an index or a selector must be what a scan finds ([script.Index]);
//   - watches, reads and writes may use a second engine, without a cache, on the same
//     storage;
//   - two writers may write one key, one in the middle of the other's write ([script.Race]);
//   - in the end the engines are closed at rest, or in the middle of their work
//     ([script.Scenario].Abrupt), or drained there ([script.Scenario].Drain), by a caller whose
//     context may end first ([script.Scenario].Impatient), and who then drains again or closes;
//   - after the end another engine may start on empty storage ([script.Scenario].Restart):
//     it must refuse revisions and lists of the first.
//
// A turn is not interrupted. Package explore does not cover what consumers on other
// goroutines see in the middle of a turn: the engine's tests do, under the race
// detector.
//
// # How it is judged
//
// Storage is a backend in memory with faults. The writes that it acknowledges, and its
// deletions of expired objects, are the history, with which package judge compares
// watches and reads. The history also says which changes the engine received as events:
// only those must be shown one by one. If storage goes back, the history forks: a watch
// that ended before is judged by the old history, and a watch that continues must match
// the new one from its start. An informer or an object cache may show the old history
// until it has learned of the new one, and from then on only the new one.
//
// A write must store the value that it was given, under its key and with its TTL, and nothing
// if an equal value is there. A write without an answer must fail as one whose outcome is unknown and must not
// be tried again: storage was asked once for the change that the call was to make, and all that is shown later must
// agree with whether that was done. A call that is refused must have a reason for that: the revision
// is no longer kept or has not come, or the engine is not ready or cannot reach storage. The
// engine must keep the events that its window's limits say, and no more; those from before its
// start, too, if storage has kept them. A watch that says that it has left out events must have
// been behind, and must count them. A watch that ends since it is behind must have had events to
// deliver. A drain must have given watches, and an informer, all that was acknowledged, and must
// refuse what is written meanwhile. One whose context ends must fail, and so must a drain after it. A watch that the error
// does not name must have had what had arrived from storage; one that it names must not, and can resume where it says.
//
// # How calls are judged before the engine has noticed that storage went back
//
// The cache shows the old history until it has a state of the new one, and from then on only that.
// Until then:
//
//   - a write goes to storage as it is now. So do a read of the newest state of one object, and all
//     calls of an engine without a cache;
//   - a read of the cache, or at a revision, shows the old or the new history. A list is of the one
//     that its Timeline says, and so are all of its pages;
//   - a list of the newest state shows storage as it is now if that is at an older revision than the
//     cache was. Otherwise it may show the old history;
//   - a linearizable watch is refused under the same condition. Other watches may begin in the old
//     history, even from a revision of the new one, since a revision does not say of which it is. They
//     must then end as expired, and all that they deliver must agree with one history;
//   - a watch that goes on with a list, a next page and a checkpoint are refused if they are of
//     another history than the cache. What goes on with a list that came from storage itself may be
//     refused even when the cache has noticed, since the cache did not have its timeline.
//
// Once the engine has recovered, every watch has ended, or agrees with the new history from its start, and
// reads, informers and object caches show that alone.
//
// # What is not judged
//
// Consumers of the engine's Source other than an informer and an object cache are not
// judged: [Config].Attach can start them and register invariants of them. When objects were
// written and when they expire is not compared for deletions that the engine has found by
// comparing states, nor for what storage had before it went back.
//
// An engine whose storage may block tries a write first with the object that its cache has, and storage
// compares only the revisions. After storage went back they can be equal though the objects are not, and
// the write is then made from the old one. Scenarios leave such writes out.
//
// # How to replay
//
// A finding names its seed. [Config].From with Seeds: 1, or on the command line
//
//	watchmill sim explore --seed 42
//
// plays it again, step for step, as long as the program is the same. The hash of a report
// has the order of all that happened, with keys, revisions and errors, but no values. A
// change to what is drawn gives a seed another scenario. To keep a finding as a regression
// test, keep its [script.Scenario], as Go or as JSON, and [Play] it. The interleaving is
// drawn from Scenario.Seed, and a change of the engine may change it: play the scenario
// with a few more seeds.
//
// A scenario is drawn in full before it is played, and no step depends on the outcome
// of another. So the shrinker can leave out steps of a scenario that fails, with the
// same seed for the interleaving, until no single step can be left out.
package explore
