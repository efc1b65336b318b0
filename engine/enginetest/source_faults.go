package enginetest

import (
	"cmp"
	"slices"
)

// FailList makes the next n calls of List fail with err, or [ErrInjected] if
// that is nil. It replaces what was told before; zero calls ends it.
func (s *source) FailList(n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = failures{max(0, n), cmp.Or(err, ErrInjected)}
}

// FailWatch is to calls of Watch what FailList is to those of List.
func (s *source) FailWatch(n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = failures{max(0, n), cmp.Or(err, ErrInjected)}
}

// ResetWatches breaks all watches that run: their next call fails with err, or
// [ErrReset] if that is nil. It returns how many there were.
func (s *source) ResetWatches(err error) int {
	watches := s.watching()
	for _, w := range watches {
		w.fail(cmp.Or(err, ErrReset))
	}
	return len(watches)
}

// Repeat makes all watches that run deliver their last event once more.
func (s *source) Repeat() {
	for _, w := range s.watching() {
		w.repeat()
	}
}

// Stall makes the storage go silent: watches deliver nothing and notify nobody,
// until Resume. Lists and writes go on.
func (s *source) Stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = true
}

// Resume ends Stall. All watches that run notify their readers.
func (s *source) Resume() {
	s.mu.Lock()
	s.stalled = false
	s.mu.Unlock()
	for _, w := range s.watching() {
		w.notify()
	}
}

// watching returns the watches that run.
func (s *source) watching() []*sourceWatcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.running)
}

// isStalled reports whether watches are to be silent.
func (s *source) isStalled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalled
}
