package load

import (
	"fmt"
	"regexp"
	"sync"
)

// maxFailures is how many errors a report holds.
const maxFailures = 10

// failures are the first errors that were met, and how often. Those that differ in
// numbers alone (a revision, a count) are one: else a few that come again and
// again would leave no room for others.
type failures struct {
	mu    sync.Mutex
	met   []*failure
	known map[string]*failure
}

type failure struct {
	text  string
	times int
}

var digits = regexp.MustCompile(`[0-9]+`)

// failure records an error of an operation.
func (r *run) failure(operation string, err error) { r.failed.note(operation, err) }

// engine records an error that the engine passed to OnError.
func (f *failures) engine(err error) { f.note("engine", err) }

func (f *failures) note(operation string, err error) {
	text := fmt.Sprintf("%s: %v", operation, err)
	shape := digits.ReplaceAllString(text, "0")
	f.mu.Lock()
	defer f.mu.Unlock()
	if met := f.known[shape]; met != nil {
		met.times++
		return
	}
	if len(f.met) == maxFailures {
		return
	}
	if f.known == nil {
		f.known = map[string]*failure{}
	}
	f.known[shape] = &failure{text: text, times: 1}
	f.met = append(f.met, f.known[shape])
}

func (f *failures) all() (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, met := range f.met {
		text := met.text
		if met.times > 1 {
			text += fmt.Sprintf(" (%d times like this)", met.times)
		}
		texts = append(texts, text)
	}
	return texts
}
