package script

import (
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
)

// steps draws the next step, or several that belong together.
func (d *drawing) steps() []Step {
	switch d.IntN(40) {
	case 0:
		return d.burst()
	case 1:
		return d.watchDuringChanges()
	case 2:
		return d.lateJoiner()
	case 3:
		return d.futureWatch()
	case 4:
		return d.unreadEmissions()
	case 5:
		return d.nextTimeline()
	case 6:
		return d.failures()
	case 7:
		return d.unreadChanges()
	}
	return []Step{d.step(d.verb())}
}

// burst draws many writes. Half of the bursts write only two values, so that the window
// moves past watches of other objects.
func (d *drawing) burst() (burst []Step) {
	few := []uint64{d.Uint64(), d.Uint64()}
	if d.IntN(2) == 0 {
		few = nil
	}
	for range 2 + d.IntN(30) { // more than a small window holds, with few turns between them
		write := d.step(Write)
		if few != nil {
			write.Seed = pick(d, few...)
		}
		burst = append(burst, write)
		if turns := d.IntN(3); turns > 0 {
			burst = append(burst, Step{Do: Turns, N: turns})
		}
	}
	return burst
}

// watchDuringChanges draws a watch that starts while one of the engine's actors is slow, and a
// step during its start that takes effect before it.
func (d *drawing) watchDuringChanges() []Step {
	steps := []Step{{Do: Slow, N: pick(d, 3, 3, 4, 5)}}
	for range 1 + d.IntN(3) {
		steps = append(steps, d.step(Write), Step{Do: Turns, N: 1 + d.IntN(6)})
	}
	watch := d.step(Watch)
	meanwhile := d.step(pick(d, verbsDuringStart...))
	watch.Turns, watch.After, watch.Meanwhile = Unlimited, 1+d.IntN(5), &meanwhile
	return append(steps, watch, Step{Do: Slow})
}

// lateJoiner draws two watches of one selection: the second starts at an older revision, and
// the window then moves past its position before its consumer reads.
func (d *drawing) lateJoiner() []Step {
	first := d.step(Watch)
	first.Start.Consumer = Handler
	second := d.step(Watch)
	second.Start.Selection, second.Start.Consumer, second.Start.Back = first.Start.Selection, Pull, 1+d.IntN(8)
	second.Start.Options.InitialState, second.Start.Options.Last = false, 0
	return slices.Concat([]Step{first}, d.burst(), []Step{{Do: Settle}, second}, d.burst(),
		[]Step{{Do: Take, Watch: second.Watch, N: 100, Turns: Unlimited}})
}

// futureWatch draws a watch that starts at a future revision, mostly while one of the
// engine's actors is slow, and then deletions and a break of storage's watches.
func (d *drawing) futureWatch() []Step {
	watch := d.step(Watch)
	watch.Start.Back, watch.Start.Options.InitialState, watch.Start.Options.Last = -1-d.IntN(3), false, 0
	watch.Turns = pick(d, Unlimited, 0, 3)
	steps := []Step{{Do: Slow, N: pick(d, 0, 3, 4, 5)}, watch}
	for range 1 + d.IntN(4) {
		steps = append(steps, d.step(pick(d, Remove, Remove, Write)))
	}
	steps = append(steps, d.step(pick(d, Expire, Outage)), d.step(Remove), Step{Do: Turns, N: d.IntN(12)}, Step{Do: Slow})
	return append(steps, Step{Do: Take, Watch: watch.Watch, N: 10, Turns: Unlimited})
}

// unreadEmissions draws a watch, conflating where that is possible, whose consumer does not
// read while values are emitted, often more than the window holds, and another emission
// after it has read a few.
func (d *drawing) unreadEmissions() []Step {
	watch := d.step(Watch)
	watch.Start.Consumer, watch.Start.Options.Buffer, watch.Start.Options.Last = pick(d, Pull, Batches, Channel, Loop), 1, 0
	if !d.transactions && !watch.Start.Uncached {
		watch.Start.Options.Policy = engine.Conflate
	}
	steps := []Step{watch, {Do: Settle}}
	for range 1 + d.IntN(30) {
		steps = append(steps, d.step(pick(d, Emit, Emit, Emit, Write)))
	}
	return append(steps, Step{Do: Settle}, Step{Do: Take, Watch: watch.Watch, N: 1 + d.IntN(5), Turns: Unlimited}, d.step(Emit), Step{Do: Settle})
}

// unreadChanges draws a conflating watch of everything that has more unread events than its buffer when they
// leave the window by their age, often without any loss, and then an emission.
func (d *drawing) unreadChanges() []Step {
	watch := d.step(Watch)
	watch.Start.Consumer, watch.Start.Selection, watch.Start.Options.Buffer, watch.Start.Options.Last = pick(d, Pull, Batches, Channel), 0, 1, 0
	if !d.transactions && !watch.Start.Uncached {
		watch.Start.Options.Policy = engine.Conflate
	}
	steps := []Step{watch, {Do: Settle}}
	for range 2 + d.IntN(2) {
		steps = append(steps, d.step(Write))
	}
	steps = append(steps, Step{Do: Settle}, Step{Do: Pass, N: 3, For: time.Second}, d.step(Write), Step{Do: Settle})
	take := Step{Do: Take, Watch: watch.Watch, N: 10, Turns: Unlimited}
	return append(steps, take, d.step(Emit), Step{Do: Settle}, take)
}

// leftInABatch draws a consumer whose loop is in the middle of a batch when the engine is drained.
func (d *drawing) leftInABatch() []Step {
	watch := d.step(Watch)
	watch.Start.Consumer, watch.Turns, watch.Meanwhile = Loop, Unlimited, nil
	steps := []Step{watch, {Do: Settle}}
	for range 2 + d.IntN(4) {
		steps = append(steps, d.step(Write))
	}
	return append(steps, Step{Do: Settle}, Step{Do: Take, Watch: watch.Watch, N: 1 + d.IntN(2), Turns: Unlimited})
}

// failures draws a watch whose function fails for some of its events, with writes and what else
// happens before, during and after the pauses.
func (d *drawing) failures() []Step {
	watch, fail := d.step(Watch), d.step(Fail)
	watch.Start.Consumer, fail.Watch = Processor, watch.Watch
	steps := []Step{watch, {Do: Settle}, fail}
	for range 1 + d.IntN(20) {
		verb := d.verb()
		if d.IntN(2) == 0 {
			verb = pick(d, Write, Write, Turns, Pass)
		}
		steps = append(steps, d.step(verb))
	}
	if d.IntN(2) == 0 {
		steps = append(steps, Step{Do: Pass, N: 5, For: Backoff}, fail)
	}
	return append(steps, d.step(Write), Step{Do: Turns, N: d.IntN(12)})
}

// nextTimeline draws a client that lists, storage that then begins another timeline, mostly
// with as many revisions, and the client going on with its list.
func (d *drawing) nextTimeline() []Step {
	list, next := d.step(List), d.step(WatchLastList)
	list.N = int(ReadLatest)
	if d.IntN(2) == 0 {
		list, next = d.step(NextPage), d.step(NextPage)
		list.N = 1
	}
	list.Meanwhile, next.Meanwhile = nil, nil
	back := d.step(pick(d, Rewind, Rewrite))
	steps := []Step{list, back}
	for range back.N + d.IntN(4) {
		steps = append(steps, d.step(Write))
	}
	return append(steps, Step{Do: Settle}, next, Step{Do: Take, Watch: next.Watch, N: 10, Turns: Unlimited})
}
