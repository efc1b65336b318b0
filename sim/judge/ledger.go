package judge

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

// Ledger records the writes to a storage that many goroutines write to. Its zero
// value is empty. Note, Gap and Newest are safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	entries []Entry
	gaps    []gap
}

// gap is a range of revisions, (after, through], that the engine did not receive.
type gap struct{ after, through store.Revision }

// Entry is one write.
type Entry struct {
	Revision store.Revision
	Key      string
	// Labels and Fields are those of the object after the write.
	Labels labels.Set
	Fields fields.Set
	// Deleted: the write deleted the object.
	Deleted bool
	// Emitted: the write emitted a value that did not become state.
	Emitted bool
	// Stored is when the write reached storage, by the caller's clock, in nanoseconds.
	Stored int64
}

// Note adds a write. Writes may be added in any order.
func (l *Ledger) Note(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
}

// Gap notes that the engine has not received the revisions (after, through] as events, and
// will not: it has listed instead, as when storage has compacted them.
func (l *Ledger) Gap(after, through store.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaps = append(l.gaps, gap{after, through})
}

// missing returns the gaps in order, each without what those before it have too.
func (l *Ledger) missing() []gap {
	l.mu.Lock()
	gaps := slices.Clone(l.gaps)
	l.mu.Unlock()
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(a.after, b.after) })
	var reached store.Revision
	for i := range gaps {
		gaps[i].after = max(gaps[i].after, reached)
		reached = max(reached, gaps[i].through)
	}
	return gaps
}

// Newest returns the write that was noted last; false if there is none. A concurrent
// writer may have noted a higher revision before it.
func (l *Ledger) Newest() (Entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		return Entry{}, false
	}
	return l.entries[len(l.entries)-1], true
}

// NewestByKey returns the last write of each key, other than emitted values. Note must not
// be called any more.
func (l *Ledger) NewestByKey() map[string]Entry {
	newest := map[string]Entry{}
	for _, e := range l.inOrder() {
		if !e.Emitted {
			newest[e.Key] = e
		}
	}
	return newest
}

// inOrder returns the entries in the order of revisions. Note must not be called
// any more, but Newest may.
func (l *Ledger) inOrder() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.entries, func(a, b Entry) int { return cmp.Compare(a.Revision, b.Revision) })
	return l.entries
}
