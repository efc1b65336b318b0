package engine

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// A continue token names the timeline of its page, so that the pages of one list show one
// history:
//
//	storage . engine . epoch
//
// An engine knows how often storage went back in time since the engine began, as the epoch.
// Other engines on the same storage, such as replicas, count by themselves. So they compare
// only the storage, and the engine that made the token compares all.

// tokenTimeline returns a timeline as this engine's continue tokens name it.
func (e *core) tokenTimeline(t store.Timeline) string {
	storage := fnv.New64a()
	_, _ = io.WriteString(storage, t.StoreID) // a hash accepts everything
	return fmt.Sprintf("%x.%x.%x", storage.Sum64(), e.tokenID, t.Epoch)
}

// continuesOn reports whether the page of q may be of timeline t: of any if it is the first,
// or if the token names none.
func (e *core) continuesOn(q query, t store.Timeline) bool {
	if q.timeline == "" {
		return true
	}
	here := e.tokenTimeline(t)
	storage, maker, _ := strings.Cut(q.timeline, ".")
	if strings.HasPrefix(maker, fmt.Sprintf("%x.", e.tokenID)) {
		return q.timeline == here
	}
	return strings.HasPrefix(here, storage+".")
}

// setToken gives a page that is not the last its continue token.
func (e *core) setToken(l *listed) {
	if l.more {
		last := l.Items[len(l.Items)-1]
		l.Continue = backend.Token{Revision: l.Revision, Start: last.Key, Timeline: e.tokenTimeline(l.timeline.of)}.Encode()
	}
}
