package sample

import (
	"cmp"
	"hash/fnv"
	"iter"
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

// Lists are some of the lists of a group of readers, to be compared with the state at their revision
// once everything is written. They are of all times of the load, and of selections of all times. The
// methods are safe for concurrent use, except All.
type Lists struct {
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

// New returns a sample without lists; the seed determines which selections it prefers.
func New(seed uint64) *Lists { return &Lists{seed: seed, stride: 1} }

// Len returns how many lists are kept.
func (s *Lists) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// All returns the selections, and the lists of each. It is for the time when the readers have ended.
func (s *Lists) All() iter.Seq2[scenario.Selection, []judge.Listing[content.Item]] {
	return func(yield func(scenario.Selection, []judge.Listing[content.Item]) bool) {
		for _, of := range s.selections {
			if !yield(of.Selection, of.lists) {
				return
			}
		}
	}
}

// Keeps reports whether the next list of the selection is to be kept.
func (s *Lists) Keeps(sel scenario.Selection) bool {
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
func (s *Lists) find(sel scenario.Selection) *sampled {
	for _, of := range s.selections {
		if of.Selection == sel {
			return of
		}
	}
	return nil
}

// admit adds a selection, in place of the one with the highest rank if there are enough, and returns it.
// It returns nil if that is the selection itself, as it then will be whenever it is listed.
func (s *Lists) admit(sel scenario.Selection) *sampled {
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
func (s *Lists) rank(sel scenario.Selection) uint64 {
	h := fnv.New64a()
	for _, part := range []string{sel.Labels, sel.Fields, sel.Prefix, sel.Key} {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return rand.NewPCG(s.seed, h.Sum64()).Uint64()
}

// Keep keeps a list for which Keeps has reported true. Once there are enough it drops every other list of
// each selection.
func (s *Lists) Keep(sel scenario.Selection, l judge.Listing[content.Item]) {
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
func (s *Lists) halve() {
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
