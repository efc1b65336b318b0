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
	// objects are those that there are, by key.
	objects map[string]*engine.Object[content.Item]
	// since is the revision behind which it knows everything, zero if it has been
	// given the whole state; founded says that it has been set.
	since   store.Revision
	founded bool
}

// Remember has the trail remember what the watcher knows, for
// [Expected.Ignorance]. It takes space for each object. It must come first.
func (t *Trail) Remember() { t.known = &knowledge{objects: map[string]*engine.Object[content.Item]{}} }

// Objects returns what the watcher knows, if it remembers, by key.
func (t *Trail) Objects() map[string]*engine.Object[content.Item] {
	if t.known == nil {
		return nil
	}
	return t.known.objects
}

// Replace has the watcher know other objects than its events add up to: what it
// has made of them. Without Remember it does nothing.
func (t *Trail) Replace(objects map[string]*engine.Object[content.Item]) {
	if t.known != nil {
		t.known.objects = objects
	}
}

// found says what the knowledge builds on, unless that is known.
func (k *knowledge) found(since store.Revision) {
	if k != nil && !k.founded {
		k.since, k.founded = since, true
	}
}

// anew starts over: the whole state is to come.
func (k *knowledge) anew() {
	if k != nil {
		clear(k.objects)
		k.since, k.founded = 0, true
	}
}

func (k *knowledge) learn(ev *engine.Event[content.Item]) {
	switch {
	case k == nil || ev.Object == nil || ev.Type == engine.Emitted:
	case ev.Type == engine.Deleted:
		delete(k.objects, ev.Object.Key)
	default:
		k.objects[ev.Object.Key] = ev.Object
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
		known, there := t.known.objects[key]
		is := a.matches(key, e.Attrs)
		if e.Revision > t.known.since && (is != there || is && known.Revision != e.Revision) {
			n++
		}
	}
	return n
}
