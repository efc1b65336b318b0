package explore

import (
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
)

// Scenario is what happens in one world, as data: it depends on no state, so
// that steps can be left out and the others still mean something. JSON keeps all
// of it; [Play] plays it.
type Scenario struct {
	// Seed is the one that it was drawn from. It decides the interleaving too.
	Seed  uint64 `json:"seed"`
	Setup Setup  `json:"setup"`
	Steps []Step `json:"steps"`
	// Abrupt closes the engine in the middle of everything, instead of letting
	// it come to rest first.
	Abrupt bool `json:"abrupt,omitzero"`
	// Again then starts another engine on empty storage, which must refuse the
	// revisions at which consumers of the first stood.
	Again bool `json:"again,omitzero"`
}

// Setup is what a world is like from the start.
type Setup struct {
	// Blocks: storage may block, so the engine asks it from an actor of its own.
	Blocks bool `json:"blocks,omitzero"`
	// Batch is the most events that storage hands out at once; zero is no limit.
	Batch int `json:"batch,omitzero"`
	// Adopted: the engine takes over the state that storage keeps, as it does of
	// storage in memory of its own, which keeps no more history than the window
	// needs. Otherwise it builds a second one.
	Adopted bool `json:"adopted,omitzero"`
	// Transactions: storage has several changes at one revision. It is never
	// Adopted then, nothing makes the engine list again, and no watch conflates:
	// numbers that a comparison of states gives to deletions would lie within them.
	Transactions bool `json:"transactions,omitzero"`
	// Window bounds what the engine remembers.
	Window engine.Window `json:"window,omitzero"`
	// Indexed has the engine index the fields and labels that it was told to.
	Indexed bool `json:"indexed,omitzero"`
	// InformerBuffer has an informer follow the engine, with a handler that may fall
	// behind by so many notifications before InformerPolicy applies; zero: there is no
	// informer.
	InformerBuffer int             `json:"informerBuffer,omitzero"`
	InformerPolicy informer.Policy `json:"informerPolicy,omitzero"`
	// ObjectsIdle has an object cache on the engine, which ceases to follow an object
	// that is not read for so long; zero: there is no object cache.
	ObjectsIdle time.Duration `json:"objectsIdleNanoseconds,omitzero"`
	// Direct has a second engine, without a cache, on the same storage.
	Direct bool `json:"direct,omitzero"`
	// VerifyEvery is the time between the engine's own comparisons of its cache
	// with storage; zero is for what Config.Engine says.
	VerifyEvery time.Duration `json:"verifyEveryNanoseconds,omitzero"`
	// BookmarkPeriod is the time between bookmarks.
	BookmarkPeriod time.Duration `json:"bookmarkPeriodNanoseconds,omitzero"`
}

// mirrored reports whether an informer or an object cache follows the engine.
func (s *Setup) mirrored() bool { return s.InformerBuffer > 0 || s.ObjectsIdle != 0 }

// Step is one thing that happens. What its fields mean depends on Do.
type Step struct {
	Do Verb `json:"do"`
	// Watch is the watch that the step is about; if it does not exist, the step does
	// nothing. Other is the watch that the step starts, if it starts one.
	Watch int `json:"watch,omitzero"`
	Other int `json:"other,omitzero"`
	// Direct has a write or a read be by the engine without a cache, if there is one.
	Direct bool `json:"direct,omitzero"`
	// N is a number of turns, events, calls or revisions.
	N int `json:"n,omitzero"`
	// Turns is how many turns a call may wait for; negative: for all.
	Turns int `json:"turns,omitzero"`
	// Seed decides values and keys.
	Seed uint64 `json:"seed,omitzero"`
	// For is the time that passes, by which the clock jumps, or that an object
	// lives.
	For time.Duration `json:"forNanoseconds,omitzero"`
	// Start is the watch that is started: of [Watch] and [Follow], which need it.
	Start *Start `json:"start,omitzero"`
	// Meanwhile, if not nil, happens while the call of a watch or a read waits,
	// when it has waited for After turns; at the latest when it is over.
	Meanwhile *Step `json:"meanwhile,omitzero"`
	After     int   `json:"after,omitzero"`
}

// Start says how a watch starts.
type Start struct {
	// Selection is which of [Config].Selections it asks for, counted around.
	Selection int      `json:"selection"`
	Consumer  Consumer `json:"consumer"`
	// Direct asks the engine without a cache, if there is one; otherwise it is
	// nothing.
	Direct bool `json:"direct,omitzero"`
	// Options are what else is asked for. The selection's selectors are put in.
	Options engine.WatchOptions `json:"options"`
	// Back, if not zero, starts so many revisions before the newest, plus one;
	// negative ones are in the future.
	Back int `json:"back,omitzero"`
}

// Consumer is how a watch is consumed.
type Consumer uint8

// The consumers.
const (
	// Pull ranges over the watch, an event at a time.
	Pull Consumer = iota
	// Batches takes all there is at once.
	Batches
	// Channel receives from the watch's channel.
	Channel
	// Handler has a function called for each event.
	Handler
	// Curious has a function called that calls the engine and waits for the answer.
	Curious
	consumers
)

func (c Consumer) handled() bool { return c == Handler || c == Curious }

// Verb is what a step does.
type Verb uint8

// The verbs.
const (
	// Write stores a value, Lease one that expires after For, Remove deletes an
	// object, Emit passes a value through. Create stores a value if its key is free;
	// RemoveIf deletes an object if it is at the revision N before its own, which it
	// is for zero alone.
	Write Verb = iota + 1
	Lease
	Remove
	Emit
	Create
	RemoveIf
	// Race has two writers of one key: in the middle of one's Update, which N one means
	// for the object as it was, or N two of its Replace, the other stores a value.
	Race
	// Transact makes N and two more changes at one revision, in storage itself.
	Transact
	// Turns lets the engine have N turns, Settle all there are.
	Turns
	Settle
	// Watch starts a watch, Take has its consumer take N events, Resume starts
	// another one where its consumer stands, Stop ends it.
	Watch
	Take
	Resume
	Stop
	// Get and List read, Pages lists in pages of N while writes go on, Follow
	// lists and watches from there.
	Get
	List
	Pages
	Follow
	// Acquire makes a reference to an object of the object cache, Fetch reads by one,
	// Release gives one up. Without an object cache they are nothing.
	Acquire
	Fetch
	Release
	// Pass lets time pass, in N pieces with turns between them; Jump corrects the
	// clock.
	Pass
	Jump
	// Close of a watch by storage, its loss, and its expiry.
	Hangup
	Outage
	Expire
	// Lose and Repeat: the next batch lacks an event, or has one twice.
	Lose
	Repeat
	// FailLists and FailWatches: the next N calls fail. SlowLists: the next N
	// take time and turns.
	FailLists
	FailWatches
	SlowLists
	// Block makes storage go silent, Unblock ends that.
	Block
	Unblock
	// Compact gives up storage's history up to N revisions before the newest.
	// Rewind takes storage back by N revisions. Rewrite does too, and has others
	// in their place: in most cases as many as the engine has heard of, or more.
	Compact
	Rewind
	Rewrite
	// Leave ends the context of the call that is under way, if it happens in the
	// middle of one, or that of a watch.
	Leave
	// Panic has a handler panic at its next event.
	Panic
	// Slow has the actor with the ID N take its turns only when no other has one;
	// zero: none. The engine's own are 2 to 6.
	Slow
	verbs
)
