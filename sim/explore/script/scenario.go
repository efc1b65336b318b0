package script

import (
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
)

// Scenario is what happens in one world, as data. No step depends on the outcome of
// another, so any steps can be left out. JSON keeps all of it, and explore.Play plays it. A
// field that a scenario does not have is an error of reading the JSON, which names it: the
// scenario would not play as it did when it was kept.
type Scenario struct {
	// Seed is the seed from which the scenario was drawn. It decides the interleaving,
	// too.
	Seed  uint64 `json:"seed"`
	Setup Setup  `json:"setup"`
	Steps []Step `json:"steps"`
	// Abrupt closes the engine right after the last step, instead of letting it come
	// to rest first.
	Abrupt bool `json:"abrupt,omitzero"`
	// Drain drains the engine, and the one without a cache, after the last step, while consumers
	// read, instead of letting it come to rest first. A write in the middle of that must be refused.
	Drain bool `json:"drain,omitzero"`
	// Impatient has the context of each drain end before that is done: by Seed, at once or after some turns, and with the
	// faults that storage has or without. Then the engine is drained again, or closed. It requires Drain.
	Impatient bool `json:"impatient,omitzero"`
	// Restart starts another engine on empty storage afterwards. It must refuse to resume
	// at the positions of consumers of the first, and to go on with its last list.
	Restart bool `json:"restart,omitzero"`
}

// Setup is the configuration of a world.
type Setup struct {
	// Blocks says that storage may block, so the engine calls it from an actor of its
	// own.
	Blocks bool `json:"blocks,omitzero"`
	// Batch is the maximum number of events that storage returns at once; zero means no
	// limit.
	Batch int `json:"batch,omitzero"`
	// SharesState says that the engine shares the state that storage keeps, as it does
	// with the backend in memory that it makes for itself. Storage then keeps no more history
	// than the window needs. Otherwise the engine builds a second state.
	SharesState bool `json:"sharesState,omitzero"`
	// Transactions says that storage has several changes at one revision. A comparison
	// of two states would give deletions revisions inside a transaction, so a
	// scenario with transactions never shares the state, never makes the engine list again
	// and has no watch that conflates. [Scenario.Validate] refuses others.
	Transactions bool `json:"transactions,omitzero"`
	// NoPrev says that storage sends the engine neither the state before a change nor what is
	// deleted. It has no effect with SharesState.
	NoPrev bool `json:"noPrev,omitzero"`
	// Before is how many changes storage has had when the engine starts, at most 100,000. By
	// [Scenario].Seed, storage may have discarded some of that history.
	Before int `json:"before,omitzero"`
	// KeepsHistory says that storage and its history outlive the engine, as a file does. The engine
	// then begins with all of the history that storage has, and not with its newest state.
	KeepsHistory bool `json:"keepsHistory,omitzero"`
	// Window bounds the history that the engine keeps.
	Window engine.Window `json:"window,omitzero"`
	// Indexed has the engine index the fields and labels that explore.Config.Engine names.
	Indexed bool `json:"indexed,omitzero"`
	// InformerBuffer is the buffer of a handler of an informer that follows the engine:
	// how many notifications it may fall behind before InformerPolicy
	// applies. Zero means that there is no informer.
	InformerBuffer int             `json:"informerBuffer,omitzero"`
	InformerPolicy informer.Policy `json:"informerPolicy,omitzero"`
	// InformerResync is the period after which the handler gets every object again; zero means
	// never.
	InformerResync time.Duration `json:"informerResyncNanoseconds,omitzero"`
	// InformerIndexed gives the informer an index from the start.
	InformerIndexed bool `json:"informerIndexed,omitzero"`
	// ObjectsIdle is the time after which an object cache on the engine ceases to follow
	// an object that is not read. Zero means that there is no object cache.
	ObjectsIdle time.Duration `json:"objectsIdleNanoseconds,omitzero"`
	// Uncached adds a second engine, without a cache, on the same storage.
	Uncached bool `json:"uncached,omitzero"`
	// VerifyEvery is the time between the engine's own comparisons of its cache
	// with storage; zero means that of explore.Config.Engine.
	VerifyEvery time.Duration `json:"verifyEveryNanoseconds,omitzero"`
	// ListWhenBehind has the engine list instead of resuming when storage has moved on by more
	// than that many revisions; zero means never.
	ListWhenBehind engine.Revision `json:"listWhenBehind,omitzero"`
	// BookmarkPeriod is the time between bookmarks, at most a minute; zero means that.
	BookmarkPeriod time.Duration `json:"bookmarkPeriodNanoseconds,omitzero"`
}

// Mirrored reports whether an informer or an object cache follows the engine.
func (s *Setup) Mirrored() bool { return s.InformerBuffer > 0 || s.ObjectsIdle != 0 }

// Step is one thing that happens. The meaning of its fields depends on Do.
type Step struct {
	Do Verb `json:"do"`
	// Watch is the watch that the step is about; if it does not exist, the step does
	// nothing. Other is the watch that the step starts, if it starts one.
	Watch int `json:"watch,omitzero"`
	Other int `json:"other,omitzero"`
	// Uncached sends a write or a read to the engine without a cache, if there is one.
	Uncached bool `json:"uncached,omitzero"`
	// Unnoticed goes on after a [Rewind] or a [Rewrite] while the engine may not have noticed it, so
	// that users call it meanwhile, until the next [Recover].
	Unnoticed bool `json:"unnoticed,omitzero"`
	// N is a number of turns, events, objects, calls or revisions. [Take], [Pages],
	// [NextPage], [FailLists], [FailWatches], [SlowLists], [FailCalls], [LoseAnswers] and [Fail]
	// require it.
	N int `json:"n,omitzero"`
	// Turns is how many turns a call may wait for; a negative value, such as [Unlimited],
	// means all.
	Turns int `json:"turns,omitzero"`
	// Seed decides the values and keys of the step.
	Seed uint64 `json:"seed,omitzero"`
	// For is how much time passes, by how much the clock jumps, for how long an object
	// lives, or for how long a read may wait. It is at most a year, and so is all the time that
	// passes in a scenario.
	For time.Duration `json:"forNanoseconds,omitzero"`
	// Start describes the watch that [Watch], [Follow] and [WatchLastList] start, which
	// require it.
	Start *Start `json:"start,omitzero"`
	// Meanwhile, if not nil, happens during the call of a step that starts a watch or
	// reads, when the call has waited for After turns; at the latest after it has
	// returned.
	Meanwhile *Step `json:"meanwhile,omitzero"`
	After     int   `json:"after,omitzero"`
}

// Unlimited, as the Turns of a step, lets its call wait for all turns that there are.
const Unlimited = -1

// Start says how a watch starts.
type Start struct {
	// Selection is the index of the watch's selection in explore.Config.Selections,
	// modulo their number.
	Selection int      `json:"selection"`
	Consumer  Consumer `json:"consumer"`
	// Uncached starts the watch on the engine without a cache, if there is one, and
	// otherwise has no effect.
	Uncached bool `json:"uncached,omitzero"`
	// Options are those of the watch, except the selectors, which are the selection's.
	Options engine.WatchOptions `json:"options"`
	// Skip has a [Processor] go on without an event for which its function has failed
	// [Attempts] times. Otherwise that ends the watch.
	Skip bool `json:"skip,omitzero"`
	// Back, if not zero, starts the watch from the revision newest+1-Back: one is the
	// newest revision, and negative values are in the future.
	Back int `json:"back,omitzero"`
}

// Consumer is how a watch is consumed.
type Consumer uint8

// The consumers.
const (
	// Pull ranges over the watch, an event at a time.
	Pull Consumer = iota
	// Batches calls Next, which returns all events that are there.
	Batches
	// Channel receives from the watch's channel.
	Channel
	// Loop ranges over the watch, too, but does not leave its loop where a take ends: all that
	// comes until the next take finds it in the middle of a batch.
	Loop
	// Handler has a function that the engine calls for each event.
	Handler
	// ListingHandler has such a function, which itself lists from the engine and waits for
	// the result.
	ListingHandler
	// Processor has a function that can fail, as [Fail] says, and that the engine calls at
	// most [Attempts] times with an event.
	Processor
	consumers
)

// Attempts is how often the function of a [Processor] is called with an event, at most, and
// Backoff the pause after the first call, which doubles.
const (
	Attempts = 3
	Backoff  = 100 * time.Millisecond
)

// Handled reports whether the engine calls a function of the consumer.
func (c Consumer) Handled() bool { return c == Handler || c == ListingHandler || c == Processor }

// ReadMode is how fresh a read must be: the N of a [Get] or a [List], modulo the number of
// modes.
type ReadMode int

// The modes of reads: the state that storage has, the one that the engine has, the one of a
// revision, and one that is no older than a revision. The Seed of the step draws the
// revision.
const (
	ReadLatest ReadMode = iota
	ReadCached
	ReadExact
	ReadNotOlder
	ReadModes
)

// Verb is what a step does.
type Verb uint8

// The verbs.
const (
	// Write stores a value, Lease stores one that expires after For, Remove deletes an
	// object, and Emit emits a value, which does not become state. Create stores a value
	// if there is no object with its key. Change changes or deletes the object with the key of a
	// value, if there is one, or creates it if there is none: Seed decides which call of the
	// engine it makes, which must be refused exactly if it cannot do that. RemoveIf deletes an object on
	// the condition that its revision is N less than it is, which must be refused unless N is zero.
	Write Verb = iota + 1
	Lease
	Remove
	Emit
	Create
	Change
	RemoveIf
	// Race has two writers of one key: the second stores a value between the first one's
	// reading of the object and its write. The first writes by Update; with N one, by
	// Update with the revision that it has read as a precondition; with N two, by Replace
	// of that revision.
	Race
	// Transact makes up to N+2 changes of different keys at one revision, in storage
	// itself. It requires [Setup].Transactions, and an N of at most 100,000.
	Transact
	// Turns lets the engine have N turns, and Settle all there are.
	Turns
	Settle
	// Watch starts a watch, Take lets its consumer take N events, Resume starts another
	// watch at the position of that consumer, and Stop stops the watch.
	Watch
	Take
	Resume
	Stop
	// Get and List read, WaitFor waits until the engine has reached a revision, Pages lists in
	// pages of N objects with a write between two pages, and Follow lists and starts a watch at
	// the list's revision. WatchLastList starts a watch at the revision and the timeline of the
	// last List or Follow. NextPage lists a first page of N objects or, if a page has a next one,
	// that.
	Get
	List
	WaitFor
	Pages
	Follow
	WatchLastList
	NextPage
	// Subscribe adds another handler to the informer, which has at most four, and Index another index,
	// of which it has at most three. Without an informer they have no effect.
	Subscribe
	Index
	// Acquire acquires a reference to an object of the object cache, Fetch reads through
	// one, if N is odd the newest state, and Release releases one. Without an object cache they
	// have no effect.
	Acquire
	Fetch
	Release
	// Pass lets the time For pass N times, at most 100,000, with a few turns after each; Jump
	// corrects the clock by For.
	Pass
	Jump
	// Hangup, Outage and Expire end storage's watches: closed, as if storage could not be
	// reached, and as expired.
	Hangup
	Outage
	Expire
	// Lose removes an event from the next batch, and Repeat delivers one twice.
	Lose
	Repeat
	// FailLists and FailWatches make the next N calls fail, and SlowLists makes the next
	// N slow if storage may block. Each also ends storage's watches. FailCalls makes the next
	// N other calls of the engine with the cache fail, before they have an effect: those that read
	// or write an object, ask for the revision or compact. LoseAnswers leaves its next N writes without
	// an answer, which have then been done, are done some steps later or never are: Seed decides which.
	FailLists
	FailWatches
	SlowLists
	FailCalls
	LoseAnswers
	// Block makes storage's watches deliver nothing, until Unblock.
	Block
	Unblock
	// Compact compacts storage's history up to N revisions before the newest, and Discard has
	// the engine do so, which then forgets that history, too.
	// Rewind takes storage back by N revisions. Rewrite does so, too, and then makes
	// other writes, at least up to the revision that the engine has reached. By its seed, either may
	// be followed at once by faults, and by storage that goes back again. Then the engine recovers,
	// unless the step is Unnoticed.
	Compact
	Discard
	Rewind
	Rewrite
	// Recover lets the engine recover from a Rewind or a Rewrite that was Unnoticed, and has no
	// effect otherwise. So does the end of a scenario that is not abrupt.
	Recover
	// Cancel ends the context of the call that is under way or, outside of a call, that
	// of the watch.
	Cancel
	// Panic makes the watch's handler panic at its next event, and Fail makes that of a
	// [Processor] return an error at its next N calls.
	Panic
	Fail
	// Slow gives the actor with the ID N its turns only when no other actor has one;
	// zero ends that. The engine's own actors have the IDs 2 to 6.
	Slow
	verbs
)
