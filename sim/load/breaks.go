package load

import (
	"math"
	"math/rand/v2"
)

// breaks are a number of random points of a history at which a consumer breaks
// off, drawn one after the other so that any number costs nothing to keep. The
// zero value has none.
type breaks struct {
	rand *rand.Rand
	left int
	// next is the first point that is left, as a fraction of the history.
	next float64
}

func newBreaks(seed, consumer uint64, n int) breaks {
	b := breaks{rand: rand.New(rand.NewPCG(seed, consumer)), left: n}
	b.draw()
	return b
}

// draw moves to the next point. The least of n uniform draws from (next, 1) lies
// where its complement is the nth root of a uniform one.
func (b *breaks) draw() {
	if b.left > 0 {
		b.next += (1 - b.next) * (1 - math.Pow(b.rand.Float64(), 1/float64(b.left)))
	}
}

// due reports whether a point has been reached, and takes it.
func (b *breaks) due(progress float64) bool {
	if b.left == 0 || progress < b.next {
		return false
	}
	b.left--
	b.draw()
	return true
}
