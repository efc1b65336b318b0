package load

import (
	"cmp"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/store"
)

// ledger is what was written, for the judgement in the end.
type ledger struct {
	mu      sync.Mutex
	entries []entry
	// gaps are the revisions that the engine could not see since its storage had
	// forgotten them: (after, through] each.
	gaps [][2]store.Revision
}

// entry is one write.
type entry struct {
	revision store.Revision
	key      string
	// attrs is what the object has from now on, nil if it was deleted.
	attrs   *attrs
	stored  int64
	emitted bool
}

func (l *ledger) note(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
}

func (l *ledger) gap(after, through store.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaps = append(l.gaps, [2]store.Revision{after, through})
}

// newest returns the write that was noted last, which is among the newest.
func (l *ledger) newest() (entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		return entry{}, false
	}
	return l.entries[len(l.entries)-1], true
}

// newestByKey returns the last write of each key's state. The entries must be
// sorted, and nothing may be noted any more.
func (l *ledger) newestByKey() map[string]entry {
	newest := map[string]entry{}
	for _, e := range l.entries {
		if !e.emitted {
			newest[e.key] = e
		}
	}
	return newest
}

// sort puts the entries in the order of revisions. Nothing may be noted any more.
func (l *ledger) sort() {
	slices.SortFunc(l.entries, func(a, b entry) int { return cmp.Compare(a.revision, b.revision) })
}
