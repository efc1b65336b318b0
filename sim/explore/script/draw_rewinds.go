package script

import "math/rand/v2"

// callDuringRewinds returns the steps with calls of users between storage's going back and the engine's
// recovery, in most of the cases. It draws from a source of its own, so that the steps themselves are
// the same as without the calls.
func (d *drawing) callDuringRewinds(seed uint64, steps []Step) (all []Step) {
	own := *d
	own.Rand = rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	var begun []int
	for _, step := range steps {
		begun = append(begun, watchesOf(step)...)
		all = append(all, step)
		back := rewindIn(&all[len(all)-1])
		if back == nil || own.IntN(4) == 0 {
			continue
		}
		back.Unnoticed = true
		calls := own.callsDuringRewind(begun)
		begun = append(begun, watchesOf(calls...)...)
		all = append(append(all, calls...), Step{Do: Recover})
	}
	return all
}

// rewindIn returns the step itself, or what happens meanwhile, if storage goes back in that; nil otherwise.
func rewindIn(s *Step) *Step {
	for ; s != nil; s = s.Meanwhile {
		if s.Do == Rewind || s.Do == Rewrite {
			return s
		}
	}
	return nil
}

// watchesOf returns the watches that steps start.
func watchesOf(steps ...Step) (ids []int) {
	for _, s := range steps {
		switch s.Do {
		case Watch, Follow, WatchLastList:
			ids = append(ids, s.Watch)
		case Resume:
			ids = append(ids, s.Other)
		}
	}
	return ids
}

// verbsDuringRewind are the verbs of most of the steps during a rewind: those whose calls meet the state that the
// engine has of before, and the turns, time and faults that let it notice sooner or later.
var verbsDuringRewind = []Verb{
	Write, Write, Remove, Change, Watch, Watch, Watch, Resume, Take, Take, Get, Get, List, List, NextPage, Follow, WatchLastList,
	Fetch, Turns, Turns, Turns, Pass, Pass, Pass, FailLists, FailWatches, Hangup, Rewind, Rewrite,
}

// recentWatches is of how many of the watches that have begun last a step during a rewind may be about one.
const recentWatches = 8

// callsDuringRewind draws what happens until the engine recovers. Watches have begun before.
func (d *drawing) callsDuringRewind(begun []int) (steps []Step) {
	for range 1 + d.IntN(10) {
		verb := d.verb()
		if d.IntN(3) != 0 {
			verb = pick(d, verbsDuringRewind...)
		}
		step := d.step(verb)
		if back := rewindIn(&step); back != nil {
			back.Unnoticed = true
		}
		if recent := begun[max(0, len(begun)-recentWatches):]; len(recent) > 0 && step.Start == nil {
			step.Watch = pick(d, recent...)
		}
		steps = append(steps, step)
		begun = append(begun, watchesOf(step)...)
	}
	return steps
}
