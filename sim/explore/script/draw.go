package script

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// chance is the weight with which a verb is drawn, out of allChances.
type chance struct {
	verb   Verb
	weight int
}

// chances are the weights of the verbs: mostly writes and watches, and now and then a
// fault. Transact is drawn in place of others: see drawing.allowedVerb.
var chances = []chance{
	{Write, 30}, {Lease, 4}, {Remove, 8}, {Emit, 4}, {Create, 3}, {Change, 5}, {RemoveIf, 2}, {Race, 3},
	{Turns, 14}, {Settle, 5},
	{Watch, 9}, {Take, 14}, {Resume, 3}, {Stop, 2},
	{Get, 4}, {List, 3}, {WaitFor, 2}, {Pages, 1}, {Follow, 2}, {WatchLastList, 2}, {NextPage, 2}, {Subscribe, 1}, {Acquire, 3}, {Fetch, 4}, {Release, 1},
	{Pass, 5}, {Jump, 1},
	{Hangup, 1}, {Outage, 1}, {Expire, 2}, {Lose, 1}, {Repeat, 1},
	{FailLists, 1}, {FailWatches, 1}, {SlowLists, 1}, {FailCalls, 2}, {Block, 1}, {Unblock, 2},
	{Compact, 1}, {Discard, 2}, {Rewind, 1}, {Rewrite, 1}, {Cancel, 2}, {Panic, 1}, {Fail, 3}, {Slow, 3},
}

var allChances = func() (sum int) {
	for _, c := range chances {
		sum += c.weight
	}
	return sum
}()

// Draw returns the scenario of seed. Its watches and lists use that number of selections.
// It has at most maxSteps steps, where a sequence of steps that belong together counts as
// one. Values below one of selections and maxSteps count as one.
func Draw(seed uint64, selections, maxSteps int) Scenario {
	d := drawing{Rand: rand.New(rand.NewPCG(seed, 0x5851f42d4c957f2d)), selections: max(1, selections)}
	s := Scenario{Seed: seed, Setup: d.setup(), Abrupt: d.IntN(4) == 0, Restart: d.IntN(4) == 0}
	s.Drain = !s.Abrupt && d.IntN(5) == 0
	d.transactions, d.uncached, d.rewinds = s.Setup.Transactions, s.Setup.Uncached, d.IntN(2) == 0
	for range d.IntN(max(1, maxSteps)) {
		s.Steps = append(s.Steps, d.steps()...)
	}
	last := d.steps
	if s.Drain && d.IntN(2) == 0 {
		last = d.leftInABatch
	}
	s.Steps = append(s.Steps, last()...)
	s.Steps = loseAnswers(seed, s.Setup.addIndexes(seed, d.callDuringRewinds(seed, s.Steps)))
	s.Setup.drawPast(seed)
	s.drawImpatience(seed)
	return s
}

// drawImpatience makes a drain whose context ends of the end of a third of the abrupt scenarios. It draws from a source of
// its own, as drawPast does.
func (s *Scenario) drawImpatience(seed uint64) {
	own := rand.New(rand.NewPCG(seed, 0x94d049bb133111eb))
	if s.Abrupt && own.IntN(3) == 0 {
		s.Abrupt, s.Drain, s.Impatient = false, true, true
	}
}

// drawing is the state of Draw: its random source, and what is drawn so far.
type drawing struct {
	*rand.Rand
	selections int
	watches    int
	// selection is the selection of the last watch.
	selection int
	// transactions: storage may have several changes at one revision.
	transactions bool
	// uncached: there is a second engine, without a cache.
	uncached bool
	// rewinds: storage may go back. It does not in half of the scenarios, since less can be
	// required of an engine after that.
	rewinds bool
}

func pick[V any](d *drawing, from ...V) V { return from[d.IntN(len(from))] }

func (d *drawing) setup() Setup {
	s := Setup{
		Blocks:      d.IntN(2) == 0,
		Batch:       pick(d, 0, 1, 2, 5),
		SharesState: d.IntN(2) == 0,
		Window: engine.Window{
			MinAge:    pick(d, time.Second, time.Minute),
			MinEvents: pick(d, 0, 0, 2, 4),
			MaxEvents: pick(d, 4, 16, 1000),
			MaxBytes:  pick[int64](d, 0, 0, 4<<10),
			ChunkSize: pick(d, 1, 3, 4),
		},
		Indexed:        d.IntN(2) == 0,
		VerifyEvery:    pick(d, 0, time.Second, 10*time.Second),
		ListWhenBehind: pick[engine.Revision](d, 0, 0, 1, 5),
		BookmarkPeriod: pick(d, time.Second, 2*time.Second, time.Minute),
	}
	s.Uncached = d.IntN(3) == 0
	if d.IntN(3) == 0 {
		s.InformerBuffer = pick(d, 1, 3, 1000)
		s.InformerPolicy = pick(d, informer.Merge, informer.Resnapshot, informer.Block)
		s.InformerResync = pick(d, 0, 0, time.Second)
	}
	if d.IntN(3) == 0 {
		s.ObjectsIdle = pick(d, objectcache.NeverIdle, time.Second, time.Minute)
	}
	if s.Transactions = d.IntN(5) == 0; s.Transactions {
		s.SharesState, s.ListWhenBehind = false, 0
	}
	s.NoPrev = d.IntN(2) == 0 && !s.SharesState
	return s
}

// drawPast draws what storage has had before the engine starts, in a third of the scenarios. It draws from
// a source of its own, so that the steps are the same as without that.
func (s *Setup) drawPast(seed uint64) {
	own := rand.New(rand.NewPCG(seed, 0xd1b54a32d192ed03))
	if own.IntN(3) == 0 {
		s.Before, s.KeepsHistory = 1+own.IntN(20), own.IntN(3) != 0
	}
}

// relistVerbs are the verbs that make the engine list again or split transactions. They are
// not drawn where storage has transactions: see [Setup].Transactions.
var relistVerbs = []Verb{Expire, Lose, Repeat, FailLists, FailWatches, SlowLists, Block, Compact, Discard, Rewind, Rewrite}

// allowedVerb returns verb, or the verb in its place: with transactions, Transact for every
// third write and for the verbs in relistVerbs; without, Write for Transact and, in half of the
// scenarios, for Rewind and Rewrite.
func (d *drawing) allowedVerb(verb Verb) Verb {
	switch {
	case d.transactions && (verb == Write && d.IntN(3) == 0 || slices.Contains(relistVerbs, verb)):
		return Transact
	case !d.transactions && verb == Transact, !d.rewinds && (verb == Rewind || verb == Rewrite):
		return Write
	}
	return verb
}

func (d *drawing) verb() Verb {
	n := d.IntN(allChances)
	for _, c := range chances {
		if n -= c.weight; n < 0 {
			return c.verb
		}
	}
	return Turns
}

// verbsDuringStart are the verbs that may happen while a watch starts.
var verbsDuringStart = []Verb{Rewind, Rewrite, Write, Remove, Lease, Hangup, Expire, Compact, Pass, Cancel}

// uncachedVerbs are the verbs whose call may go to the engine without a cache.
var uncachedVerbs = []Verb{Write, Remove, Emit, Create, Change, RemoveIf, Race, Get, List, NextPage, Discard}

func (d *drawing) step(verb Verb) Step {
	verb = d.allowedVerb(verb)
	s := Step{Do: verb, Turns: Unlimited, Seed: d.Uint64(), Uncached: d.uncached && slices.Contains(uncachedVerbs, verb) && d.IntN(3) == 0}
	if d.watches > 0 {
		s.Watch = d.IntN(d.watches)
	}
	switch verb {
	case Lease:
		s.For = pick(d, 100*time.Millisecond, time.Second, 10*time.Second)
	case RemoveIf:
		s.N = d.IntN(2)
	case Race:
		s.N = d.IntN(3)
	case Transact:
		s.N = d.IntN(6)
	case Turns:
		s.N = 1 + d.IntN(20)
	case Take:
		s.N = 1 + d.IntN(12)
		s.Turns = pick(d, Unlimited, 0, 0, 3, 20)
		if s.After, s.Meanwhile = d.meanwhile(Cancel, Stop, Write, Compact); s.Meanwhile != nil {
			s.Meanwhile.Watch = s.Watch
		}
	case Watch, Follow, WatchLastList:
		s.Watch = d.newWatch()
		s.Start = d.start()
		s.Turns = pick(d, Unlimited, Unlimited, Unlimited, Unlimited, 2)
		s.After, s.Meanwhile = d.meanwhile(verbsDuringStart...)
	case Resume:
		s.Other = d.newWatch()
		s.After, s.Meanwhile = d.meanwhile(verbsDuringStart...)
	case Get, List, Fetch:
		s.N = d.IntN(4)
		d.waits(&s)
	case WaitFor:
		d.waits(&s)
	case Pages, NextPage:
		s.N = 1 + d.IntN(3)
	case Pass:
		s.N = pick(d, 1, 3, 20)
		s.For = pick(d, time.Millisecond, 70*time.Millisecond, time.Second)
	case Jump:
		s.For = pick(d, -time.Hour, -time.Second, time.Second, time.Hour)
	case FailLists, SlowLists, FailCalls:
		s.N = 1 + d.IntN(3)
	case Fail:
		s.N = 1 + d.IntN(4)
	case FailWatches:
		s.N = 1 + d.IntN(9)
	case Compact, Rewind, Rewrite:
		s.N = d.IntN(8)
	case Discard:
		s.N = d.IntN(8)
		d.waits(&s)
	case Slow:
		s.N = pick(d, 0, 3, 3, 3, 4, 5, 6, 6+d.IntN(10))
	}
	return s
}

// waits draws for how long the call of a step that reads may wait, and what happens meanwhile.
func (d *drawing) waits(s *Step) {
	s.Turns = pick(d, Unlimited, Unlimited, Unlimited, 4)
	s.For = pick(d, 0, 0, 10*time.Second)
	s.After, s.Meanwhile = d.meanwhile(Write, Remove, Emit, Hangup, Expire, Compact, Cancel)
}

// meanwhile draws the step that happens during a call, and after how many turns: nil for
// three quarters of the calls.
func (d *drawing) meanwhile(verbs ...Verb) (after int, s *Step) {
	if d.IntN(4) != 0 {
		return 0, nil
	}
	step := d.step(pick(d, verbs...))
	return d.IntN(8), &step
}

func (d *drawing) newWatch() int {
	d.watches++
	return d.watches - 1
}

func (d *drawing) start() *Start {
	if d.IntN(3) != 0 { // otherwise it has the selection of the last watch, which the engine evaluates once for both
		d.selection = d.IntN(d.selections)
	}
	s := &Start{Selection: d.selection, Consumer: Consumer(d.IntN(int(consumers))), Skip: d.IntN(2) == 0}
	s.Options = engine.WatchOptions{
		Policy:       pick(d, engine.Park, engine.Terminate, engine.Conflate),
		Buffer:       pick(d, 0, 1, 3, 10),
		Bookmarks:    d.IntN(2) == 0,
		Linearizable: d.IntN(2) == 0,
		InitialState: d.IntN(2) == 0,
		OnPool:       d.IntN(2) == 0,
	}
	rest := d.IntN(16)
	s.Options.Detached, s.Options.Progress = rest%4 == 0, s.Options.Bookmarks && rest >= 12
	switch d.IntN(10) {
	case 0:
		s.Options.InitialState, s.Options.Last = false, pick(d, 1, 2, 7, 100)
	case 1, 2, 3, 4, 5:
		s.Back = pick(d, -2, -1, 1, 1, 2, 3, 5, 9, 30)
	}
	if d.transactions {
		s.Options.Last = 0
		if s.Options.Policy == engine.Conflate {
			s.Options.Policy = engine.Park
		}
	}
	if s.Uncached = d.uncached && d.IntN(3) == 0; s.Uncached { // an engine without a cache has no window
		s.Options.Last = 0
		if s.Options.Policy == engine.Conflate {
			s.Options.Policy = engine.Park
		}
	}
	if d.IntN(5) == 0 {
		s.Options.Timeout = pick(d, time.Second, 10*time.Second)
	}
	return s
}
