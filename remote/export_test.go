package remote

import "github.com/watchmill/watchmill/store/backend"

// Held returns how many bytes of events the watch has read ahead.
func Held(w backend.Watcher) int {
	of := w.(*watch)
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.held
}
