package remote

import "github.com/watchmill/watchmill/store/backend"

// Held returns how many bytes of events the watch has read ahead.
func Held(w backend.Watcher) int {
	of := w.(*watch)
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.held
}

// Watches returns how many watches the backend has that are not closed.
func Watches(b *Backend) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.running)
}

// NewClient returns a client as a backend without [Config].Client has.
var NewClient = newClient
