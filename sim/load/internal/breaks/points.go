package breaks

import (
	"math"
	"math/rand/v2"
)

// Points are a number of random points of a history. They are drawn one after the other, so any number of
// them takes constant space. The zero value has none. They must not be used by several goroutines at once.
type Points struct {
	rand *rand.Rand
	left int
	// next is the first remaining point, as a fraction of the history.
	next float64
}

// New returns n points. The seed and the number of the consumer determine them.
func New(seed, consumer uint64, n int) Points {
	p := Points{rand: rand.New(rand.NewPCG(seed, consumer)), left: n}
	p.draw()
	return p
}

// draw moves to the next point. The least of n uniform draws from (next, 1) lies
// where its complement is the nth root of a uniform one.
func (p *Points) draw() {
	if p.left > 0 {
		p.next += (1 - p.next) * (1 - math.Pow(p.rand.Float64(), 1/float64(p.left)))
	}
}

// Skip removes the first n points.
func (p *Points) Skip(n int) {
	for ; n > 0 && p.left > 0; n-- {
		p.left--
		p.draw()
	}
}

// Due reports whether the next point has been reached, and if so removes it. progress is the part of the
// history that there has been, from 0 to 1.
func (p *Points) Due(progress float64) bool {
	if p.left == 0 || progress < p.next {
		return false
	}
	p.left--
	p.draw()
	return true
}
