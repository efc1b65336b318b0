package script

import (
	"context"
	"slices"
)

// maxShrinks bounds how many scenarios are tried to find a shorter one.
const maxShrinks = 2000

// Shrink returns the shortest scenario that it finds for which fails is still true. It
// leaves out steps by delta debugging: large pieces first, then ever smaller ones, until no
// single step can be left out, and then each remaining Meanwhile. When ctx is done or after
// 2,000 calls of fails, it returns the shortest so far. It does not change s.
func Shrink(ctx context.Context, s Scenario, fails func(Scenario) bool) Scenario {
	left := maxShrinks
	try := func(steps []Step) bool {
		if left == 0 || ctx.Err() != nil {
			return false
		}
		left--
		shorter := s
		shorter.Steps = steps
		if !fails(shorter) {
			return false
		}
		s = shorter
		return true
	}
	for piece := max(1, len(s.Steps)/2); ; piece = max(1, piece/2) {
		shrunk := false
		for at := len(s.Steps) - piece; at >= 0; at = min(at, len(s.Steps)) - piece {
			without := slices.Concat(s.Steps[:at], s.Steps[at+piece:])
			shrunk = try(without) || shrunk
		}
		if piece == 1 && !shrunk || left == 0 {
			break
		}
	}
	for i, step := range s.Steps {
		if step.Meanwhile != nil {
			step.Meanwhile = nil
			try(slices.Concat(s.Steps[:i], []Step{step}, s.Steps[i+1:]))
		}
	}
	return s
}
