package faulty

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
)

// Rule selects calls and says what happens to them. The zero value selects every
// call and only counts it.
type Rule struct {
	// Ops are the operations; none means all.
	Ops []Op
	// Under restricts the rule to calls whose [Call].Key is under this path, by
	// whole segments; see [store.HasPrefix].
	Under string
	// When, if set, further selects among the calls that match so far. It may be
	// called from several goroutines.
	When func(*Call) bool
	// Chance is the probability, between 0 and 1, that a matching call is
	// selected. Other values select all of them.
	Chance float64
	// Skip is the number of matching calls to pass before the first is selected.
	Skip int
	// Times is the number of calls to select; zero means all.
	Times int
	// Do is what happens to them.
	Do Action
}

// Action is what happens to a call. It calls proceed to pass the call to the next
// rule and finally to the underlying backend, which fills in the results;
// otherwise it fills in c.Err or a result itself. Each call of proceed makes the
// call once.
type Action func(ctx context.Context, c *Call, proceed func())

// Fault is a rule of a Backend. Make one with [Backend.Add].
type Fault struct {
	rule    Rule
	backend *Backend
	seed    uint64
	draws   atomic.Uint64 // of Chance
	fits    atomic.Uint64
	hits    atomic.Uint64
	// over is closed when the rule is removed.
	over chan struct{}
	once sync.Once
}

// Add adds a rule after the existing ones.
func (b *Backend) Add(r Rule) *Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.added++
	f := &Fault{rule: r, backend: b, seed: mix(b.seed ^ mix(b.added)), over: make(chan struct{})}
	next := append(slices.Clone(*b.faults.Load()), f)
	b.faults.Store(&next)
	return f
}

// Remove removes the rule and releases the calls that hang by it. Removing it
// again has no effect.
func (f *Fault) Remove() {
	f.once.Do(func() {
		b := f.backend
		b.mu.Lock()
		next := slices.DeleteFunc(slices.Clone(*b.faults.Load()), func(other *Fault) bool { return other == f })
		b.faults.Store(&next)
		b.mu.Unlock()
		close(f.over)
		if len(f.rule.Ops) == 0 || slices.Contains(f.rule.Ops, OpNext) {
			b.Wake()
		}
	})
}

// holds reports whether the rule has not been removed.
func (f *Fault) holds() bool {
	select {
	case <-f.over:
		return false
	default:
		return true
	}
}

// Hits returns the number of calls that the rule has affected.
func (f *Fault) Hits() uint64 { return f.hits.Load() }

// strikes reports whether the rule selects the call, and counts it.
func (f *Fault) strikes(c *Call) bool {
	r := &f.rule
	switch {
	case len(r.Ops) > 0 && !slices.Contains(r.Ops, c.Op),
		r.Under != "" && !store.HasPrefix(c.Key, r.Under),
		r.When != nil && !r.When(c):
		return false
	}
	if r.Chance > 0 && r.Chance < 1 && draw(f.seed, f.draws.Add(1)) >= r.Chance {
		return false
	}
	if f.fits.Add(1) <= uint64(max(0, r.Skip)) {
		return false
	}
	if hits := f.hits.Add(1); r.Times > 0 && hits > uint64(r.Times) {
		f.hits.Add(^uint64(0))
		return false
	}
	return true
}

// draw returns the nth number of a seed, from [0, 1).
func draw(seed, n uint64) float64 { return float64(mix(seed+n)>>11) / (1 << 53) }

// mix is the finalizer of SplitMix64: it scrambles consecutive numbers.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
