package explore

import (
	"fmt"
	"strings"
	"time"

	"github.com/watchmill/watchmill/engine"
)

// Scenario is what happens in one world, as data: it depends on no state, so
// that steps can be left out and the others still mean something.
type Scenario struct {
	// Seed is the one that it was drawn from. It decides the interleaving too.
	Seed  uint64
	Setup Setup
	Steps []Step
	// Abrupt closes the engine in the middle of everything, instead of letting
	// it come to rest first.
	Abrupt bool
}

// Setup is what a world is like from the start.
type Setup struct {
	// Blocks: storage may block, so the engine asks it from an actor of its own.
	Blocks bool
	// Batch is the most events that storage hands out at once; zero is no limit.
	Batch int
	// Window bounds what the engine remembers.
	Window engine.Window
	// Indexed has the engine index the fields and labels that it was told to.
	Indexed bool
	// BookmarkPeriod is the time between bookmarks.
	BookmarkPeriod time.Duration
}

func (s Setup) String() string {
	return fmt.Sprintf("an engine with a window of %d events in chunks of %d, for %v; bookmarks every %v; indexed: %v; storage that blocks: %v, in batches of %d",
		s.Window.MaxEvents, s.Window.ChunkSize, s.Window.MinAge, s.BookmarkPeriod, s.Indexed, s.Blocks, s.Batch)
}

// Step is one thing that happens. What its fields mean depends on Do.
type Step struct {
	Do Verb
	// Watch is the watch that it is about. One that is not there makes the step
	// nothing. Other is the new one, if there is one.
	Watch, Other int
	// N is a number of turns, events, calls or revisions.
	N int
	// Turns is how many turns a call may wait for; negative: for all.
	Turns int
	// Seed decides values and keys.
	Seed uint64
	// For is the time that passes, by which the clock jumps, or that an object
	// lives.
	For time.Duration
	// Start is the watch that is started.
	Start *Start
	// Meanwhile, if not nil, happens while the call of a watch or a read waits,
	// when it has waited for After turns; at the latest when it is over.
	Meanwhile *Step
	After     int
}

// Start says how a watch starts.
type Start struct {
	Selection int
	Consumer  Consumer
	Options   engine.WatchOptions
	// Back, if not zero, starts so many revisions before the newest, plus one;
	// negative ones are in the future.
	Back int
}

// Consumer is how a watch is consumed.
type Consumer uint8

// The consumers.
const (
	// Pull ranges over the watch, an event at a time.
	Pull Consumer = iota
	// Batches takes all there is at once.
	Batches
	// Handler has a function called for each event.
	Handler
	// Curious has a function called that asks the engine in return, and waits.
	Curious
	consumers
)

var consumerNames = [consumers]string{"pull", "batches", "handler", "curious handler"}

func (c Consumer) String() string { return consumerNames[c] }

func (c Consumer) handled() bool { return c == Handler || c == Curious }

// Verb is what a step does.
type Verb uint8

// The verbs.
const (
	// Write stores a value, Lease one that expires after For, Remove deletes an
	// object, Emit passes a value through.
	Write Verb = iota + 1
	Lease
	Remove
	Emit
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
	// in their place: as many as the engine has heard of.
	Compact
	Rewind
	Rewrite
	// Panic has a handler panic at its next event.
	Panic
	// Slow has the actor with the ID N take its turns only when no other has one;
	// zero: none. The engine's own are 2 to 5.
	Slow
	verbs
)

var verbNames = [verbs]string{
	Write: "write", Lease: "lease", Remove: "delete", Emit: "emit", Turns: "turns", Settle: "settle",
	Watch: "watch", Take: "take", Resume: "resume", Stop: "stop",
	Get: "get", List: "list", Pages: "pages", Follow: "list and watch", Pass: "time passes", Jump: "clock jumps",
	Hangup: "storage closes watches", Outage: "storage loses watches", Expire: "storage expires watches",
	Lose: "storage loses an event", Repeat: "storage repeats an event",
	FailLists: "lists fail", FailWatches: "watches fail", SlowLists: "lists are slow",
	Block: "storage goes silent", Unblock: "storage speaks again",
	Compact: "compact", Rewind: "storage goes back", Rewrite: "storage goes back and on with others",
	Panic: "handler panics", Slow: "slow is actor",
}

func (v Verb) String() string { return verbNames[v] }

// String says the step for people, such as "take w3 n=5".
func (s Step) String() string {
	var b strings.Builder
	b.WriteString(s.Do.String())
	switch s.Do {
	case Watch, Take, Resume, Stop, Follow, Panic:
		fmt.Fprintf(&b, " w%d", s.Watch)
	}
	if s.Do == Resume {
		fmt.Fprintf(&b, " as w%d", s.Other)
	}
	if s.N != 0 || s.Do == Compact || s.Do == Rewind || s.Do == Slow {
		fmt.Fprintf(&b, " n=%d", s.N)
	}
	if s.Turns > 0 {
		fmt.Fprintf(&b, " patience=%d", s.Turns)
	}
	if s.For != 0 {
		fmt.Fprintf(&b, " for=%v", s.For)
	}
	if s.Start != nil {
		fmt.Fprintf(&b, " by %v", s.Start)
	}
	if s.Meanwhile != nil {
		fmt.Fprintf(&b, ", after %d turns of that: %v", s.After, s.Meanwhile)
	}
	return b.String()
}

func (s *Start) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v selection=%d policy=%v", s.Consumer, s.Selection, s.Options.Policy)
	for _, flag := range []struct {
		on   bool
		text string
	}{
		{s.Options.InitialState, "state"},
		{s.Options.Latest, "latest"},
		{s.Options.Bookmarks, "bookmarks"},
		{s.Options.OnPool, "on-pool"},
		{s.Options.Buffer > 0, fmt.Sprintf("buffer=%d", s.Options.Buffer)},
		{s.Options.Timeout > 0, fmt.Sprintf("timeout=%v", s.Options.Timeout)},
		{s.Options.Last > 0, fmt.Sprintf("last=%d", s.Options.Last)},
		{s.Back != 0, fmt.Sprintf("from=newest%+d", 1-s.Back)},
	} {
		if flag.on {
			b.WriteString(" " + flag.text)
		}
	}
	return b.String()
}
