package script

import (
	"math/rand/v2"
	"slices"
)

// answeredVerbs are those of steps that write, and so may be left without an answer.
var answeredVerbs = []Verb{Write, Lease, Remove, Emit, Create, Change, RemoveIf, Race}

// loseAnswers returns the steps of a scenario, in a third of all of them with answers that are lost: before every
// tenth write, on average. It draws from a source of its own, so that the other steps do not depend on it.
func loseAnswers(seed uint64, steps []Step) (all []Step) {
	own := rand.New(rand.NewPCG(seed, 0xbf58476d1ce4e5b9))
	if own.IntN(3) != 0 {
		return steps
	}
	for _, step := range steps {
		if slices.Contains(answeredVerbs, step.Do) && !step.Uncached && own.IntN(10) == 0 {
			all = append(all, Step{Do: LoseAnswers, N: 1 + own.IntN(2), Turns: Unlimited, Seed: own.Uint64()})
		}
		all = append(all, step)
	}
	return all
}
