package watcher

import (
	"slices"
	"sync"
)

// Registry is the set of running watches of an engine, and knows by which contexts they
// end. The zero value is empty. It is safe for concurrent use, and costs 8 bytes per watch,
// and 8 for each that a context ends.
type Registry struct {
	// mu is taken under the locks of watches, never the other way round.
	mu      sync.Mutex
	watches []*Watch
	// leaving are those that have ended while their handler ran, until their actor
	// has stopped.
	leaving map[*Watch]struct{}

	groups contextGroups
}

// add adds w, unless present. The caller holds w's lock.
func (r *Registry) add(w *Watch) {
	if w.place > 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, w)
	w.place = uint32(len(r.watches))
}

// remove removes w, if present. The caller holds w's lock.
func (r *Registry) remove(w *Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.place == 0 {
		return
	}
	last := len(r.watches) - 1
	moved := r.watches[last]
	r.watches[w.place-1], moved.place = moved, w.place
	r.watches[last] = nil
	r.watches = r.watches[:last]
	w.place = 0
	if w.handling() {
		if r.leaving == nil {
			r.leaving = map[*Watch]struct{}{}
		}
		r.leaving[w] = struct{}{}
	}
}

// actorStopped forgets a watch whose actor has stopped.
func (r *Registry) actorStopped(w *Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.leaving, w)
}

// Handling returns the names, sorted, of the watches whose handlers are running, and
// of those that have ended meanwhile.
func (r *Registry) Handling() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	note := func(w *Watch) {
		if w.handling() {
			names = append(names, w.Name())
		}
	}
	for w := range r.leaving {
		note(w)
	}
	for _, w := range r.watches {
		note(w)
	}
	slices.Sort(names)
	return names
}

// Watches returns the running watches, in no order. It may include or miss those that
// begin or end meanwhile.
func (r *Registry) Watches() []*Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.watches)
}
