package load

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
)

const (
	// maxKept is how many lists of a group are kept, of at most maxKeptSelections selections:
	// computing the state of a selection takes a look at every write.
	maxKept           = 1000
	maxKeptSelections = 20
)

// sample keeps some of the lists of a group of readers, to be compared with the state at their revision
// once everything is written. They are of all times of the load, and of selections of all times. It is
// safe for concurrent use.
type sample struct {
	seed uint64

	mu sync.Mutex
	// selections are those of the lowest ranks so far, in order of rank. So one that comes late is kept
	// as probably as one of the beginning, without knowing all that there have been.
	selections []*sampled
	// For each selection, each stride'th list is kept, from the first on. size is how many lists of
	// all selections are kept.
	stride, size int
}

// sampled is a selection whose lists are kept.
type sampled struct {
	scenario.Selection
	rank  uint64
	made  int // the lists that readers began
	lists []judge.Listing[content.Item]
}

// newSample returns a sample without lists; the seed determines which selections it prefers.
func newSample(seed uint64) *sample { return &sample{seed: seed, stride: 1} }

// keeps reports whether the next list of the selection is to be kept.
func (s *sample) keeps(sel scenario.Selection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.find(sel)
	if of == nil {
		of = s.admit(sel)
	}
	if of == nil {
		return false
	}
	of.made++
	return (of.made-1)%s.stride == 0
}

// find returns the selection if its lists are kept, or else nil.
func (s *sample) find(sel scenario.Selection) *sampled {
	for _, of := range s.selections {
		if of.Selection == sel {
			return of
		}
	}
	return nil
}

// admit adds a selection, in place of the one with the highest rank if there are enough, and returns it.
// It returns nil if that is the selection itself, as it then will be whenever it is listed.
func (s *sample) admit(sel scenario.Selection) *sampled {
	added := &sampled{Selection: sel, rank: s.rank(sel)}
	if last := len(s.selections) - 1; last == maxKeptSelections-1 {
		if s.selections[last].rank <= added.rank {
			return nil
		}
		s.size -= len(s.selections[last].lists)
		s.selections = s.selections[:last]
	}
	at, _ := slices.BinarySearchFunc(s.selections, added.rank, func(of *sampled, rank uint64) int { return cmp.Compare(of.rank, rank) })
	s.selections = slices.Insert(s.selections, at, added)
	return added
}

// rank returns a number that is random, and the same for equal selections of loads with the same seed.
func (s *sample) rank(sel scenario.Selection) uint64 {
	h := fnv.New64a()
	for _, part := range []string{sel.Labels, sel.Fields, sel.Prefix, sel.Key} {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return rand.NewPCG(s.seed, h.Sum64()).Uint64()
}

// keep keeps a list for which keeps has reported true. Once there are enough it drops every other list of
// each selection.
func (s *sample) keep(sel scenario.Selection, l judge.Listing[content.Item]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.find(sel)
	if of == nil { // another has taken its place meanwhile
		return
	}
	of.lists = append(of.lists, l)
	if s.size++; s.size == maxKept {
		s.halve()
	}
}

// halve drops every other list of each selection, and keeps the first.
func (s *sample) halve() {
	s.stride, s.size = 2*s.stride, 0
	for _, of := range s.selections {
		kept := of.lists[:0]
		for i := 0; i < len(of.lists); i += 2 {
			kept = append(kept, of.lists[i])
		}
		of.lists = kept
		s.size += len(kept)
	}
}
