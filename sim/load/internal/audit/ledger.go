package audit

import (
	"cmp"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/store"
)

// Ledger is what was written. The zero value is empty. Note, Gap and Newest can
// be called from anywhere.
type Ledger struct {
	mu      sync.Mutex
	entries []Entry
	gaps    []gap
}

// gap is revisions that the engine could not see: (after, through].
type gap struct{ after, through store.Revision }

// Entry is one write.
type Entry struct {
	Revision store.Revision
	Key      string
	// Attrs is what the object has from now on, nil if it was deleted.
	Attrs *content.Attributes
	// Stored is when, in nanoseconds since the run's epoch.
	Stored int64
	// Emitted: it is an event, and no state.
	Emitted bool
}

// Note adds a write.
func (l *Ledger) Note(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
}

// Gap notes revisions, after one and through another, that the engine could not
// see since its storage had forgotten them.
func (l *Ledger) Gap(after, through store.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaps = append(l.gaps, gap{after, through})
}

// Newest returns the write that was noted last, which is among the newest.
func (l *Ledger) Newest() (Entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		return Entry{}, false
	}
	return l.entries[len(l.entries)-1], true
}

// NewestByKey returns the last write of each key's state. Nothing may be noted
// any more.
func (l *Ledger) NewestByKey() map[string]Entry {
	newest := map[string]Entry{}
	for _, e := range l.inOrder() {
		if !e.Emitted {
			newest[e.Key] = e
		}
	}
	return newest
}

// inOrder returns the entries in the order of revisions. Nothing may be noted any
// more, but others may still ask for the newest.
func (l *Ledger) inOrder() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.entries, func(a, b Entry) int { return cmp.Compare(a.Revision, b.Revision) })
	return l.entries
}
