package load

import (
	"fmt"
	"sync"
)

// maxFailures is how many errors a report holds.
const maxFailures = 10

// failures are the first errors that were met, each text once.
type failures struct {
	mu    sync.Mutex
	texts []string
	known map[string]bool
}

// failure notes what somebody met.
func (r *run) failure(who string, err error) { r.failed.note(who, err) }

// engine notes what the engine told OnError.
func (f *failures) engine(err error) { f.note("engine", err) }

func (f *failures) note(who string, err error) {
	text := fmt.Sprintf("%s: %v", who, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[text] || len(f.texts) == maxFailures {
		return
	}
	if f.known == nil {
		f.known = map[string]bool{}
	}
	f.known[text] = true
	f.texts = append(f.texts, text)
}

func (f *failures) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.texts
}
