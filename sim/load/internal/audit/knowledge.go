package audit

import (
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
)

// knowledge is what a watcher has been told of each object. It is for those whose
// events may stand for several: these cannot be counted, but what they lead to
// must be the newest state. A nil one learns nothing.
type knowledge struct {
	// revisions has the objects that there are, by key.
	revisions map[string]store.Revision
	// since is the revision behind which it knows everything, zero if it has been
	// given the whole state; founded says that it has been set.
	since   store.Revision
	founded bool
}

// Remember has the trail remember what the watcher knows, for
// [Expected.Ignorance]. It takes space for each object. It must come first.
func (t *Trail) Remember() { t.known = &knowledge{revisions: map[string]store.Revision{}} }

// found says what the knowledge builds on, unless that is known.
func (k *knowledge) found(since store.Revision) {
	if k != nil && !k.founded {
		k.since, k.founded = since, true
	}
}

// anew starts over: the whole state is to come.
func (k *knowledge) anew() {
	if k != nil {
		clear(k.revisions)
		k.since, k.founded = 0, true
	}
}

func (k *knowledge) learn(ev *engine.Event[content.Item]) {
	switch {
	case k == nil || ev.Object == nil || ev.Type == engine.Emitted:
	case ev.Type == engine.Deleted:
		delete(k.revisions, ev.Object.Key)
	default:
		k.revisions[ev.Object.Key] = ev.Object.Revision
	}
}

// Ignorance returns of how many objects a watcher that has read everything does
// not have the newest state, by a trail that has remembered; zero if it has not.
func (x *Expected) Ignorance(sel scenario.Selection, t *Trail) (n uint64) {
	if t.known == nil {
		return 0
	}
	if x.newest == nil {
		x.newest = x.ledger.NewestByKey()
	}
	a := x.by[sel]
	for key, e := range x.newest {
		known, there := t.known.revisions[key]
		is := a.matches(key, e.Attrs)
		if e.Revision > t.known.since && (is != there || is && known != e.Revision) {
			n++
		}
	}
	return n
}
