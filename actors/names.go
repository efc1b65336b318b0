package actors

import (
	"fmt"
	"slices"
)

// Names returns the names, sorted, of the actors that are alive. Wake actors
// have none: they are one entry that says how many they are.
func (s *System) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.named)+1)
	for c := range s.named {
		if c != &s.top.queue.cell {
			names = append(names, c.name())
		}
	}
	slices.Sort(names)
	if wakers := s.Actors() - len(names); wakers > 0 {
		names = append(names, fmt.Sprintf("%d wake actors", wakers))
	}
	return names
}
