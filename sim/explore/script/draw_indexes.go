package script

import (
	"math/rand/v2"
	"slices"
)

// addIndexes gives the informers of half of the scenarios that have one an index from the start, and returns the steps,
// with others that add one in half of them. It draws from a source of its own, so that the other steps do not depend on it.
func (s *Setup) addIndexes(seed uint64, steps []Step) []Step {
	own := rand.New(rand.NewPCG(seed, 0xd6e8feb86659fd93))
	if s.InformerBuffer == 0 {
		return steps
	}
	s.InformerIndexed = own.IntN(2) == 0
	if own.IntN(2) == 0 {
		return steps
	}
	for range 1 + own.IntN(2) {
		steps = slices.Insert(steps, own.IntN(len(steps)+1), Step{Do: Index, Turns: Unlimited})
	}
	return steps
}
