package watcher

import "sync"

// Registry is the running watches of an engine, for those that ask from outside.
// The zero value is empty. It is safe for concurrent use, and costs a watch a
// place in a slice.
type Registry struct {
	// mu is taken under the locks of watches, never the other way round.
	mu      sync.Mutex
	watches []*Watch
}

// add takes in w, unless it is in. The caller holds w's lock.
func (r *Registry) add(w *Watch) {
	if r == nil || w.place > 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, w)
	w.place = uint32(len(r.watches))
}

// remove takes out w, if it is in. The caller holds w's lock.
func (r *Registry) remove(w *Watch) {
	if r == nil {
		return
	}
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
}

// Watches returns the watches that are running, in no order. Those that begin or
// end meanwhile may be there or not.
func (r *Registry) Watches() []*Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Watch(nil), r.watches...)
}
