package engine

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/utils/dump"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// ErrMutated: a shared object was changed. The error is a
// [*MutationError].
var ErrMutated = errors.New("shared object was changed")

// MutationError says which shared object was changed, and how. It is detected after
// the fact: the code that changed the object has it from a write, a read or an event.
type MutationError struct {
	Key string
	// Revision is that of the object that was changed.
	Revision Revision
	// Before and After are deep prints of its value, labels and fields, when it
	// was first seen and when the change was found.
	Before, After string
}

func (e *MutationError) Error() string {
	before, after := difference(e.Before, e.After)
	return fmt.Sprintf("shared object %q at revision %d was changed in place, from %s to %s: objects are immutable once written; change a copy and write that",
		e.Key, e.Revision, before, after)
}

// Is makes errors.Is(err, ErrMutated) true.
func (e *MutationError) Is(target error) bool { return target == ErrMutated }

// difference cuts two texts down to their difference, with some context.
func difference(a, b string) (string, string) {
	const around = 32
	shortest := min(len(a), len(b))
	head := 0
	for head < shortest && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < shortest-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	cut := func(s string) string {
		from, to := max(0, head-around), min(len(s), len(s)-tail+around)
		text := s[from:to]
		if from > 0 {
			text = "…" + text
		}
		if to < len(s) {
			text += "…"
		}
		return text
	}
	return cut(a), cut(b)
}

// maxRetired is how many superseded objects are still tracked, since lagging
// consumers and the window share them.
const maxRetired = 1024

// detector keeps a deep print of every object that passes through it. It prints an object
// again, and compares, when the object is superseded or deleted, when it stops tracking
// it, and at the end; and with every call it compares one object in turn.
//
// A print is text, made by the printer that Kubernetes uses to hash objects: it
// follows pointers, sorts maps, includes unexported fields, handles cycles, calls no
// methods, and is readable, unlike a hash. encoding/json would leave out unexported
// fields.
type detector struct {
	schema *store.Schema
	report func(error)

	mu    sync.Mutex // guards what follows
	known map[*store.Object]*tracked
	live  map[string]*tracked // the newest of each key
	// all are the known ones in a deterministic order; next is the index of the one to
	// compare next.
	all     []*tracked
	next    int
	retired []*tracked // the oldest first
	found   []error    // to be reported when mu is released
}

// tracked is an object with its print.
type tracked struct {
	object *store.Object
	before string
	place  int // in detector.all
	// reported: its change has been reported.
	reported bool
}

func newDetector(schema *store.Schema, report func(error)) *detector {
	return &detector{
		schema: schema,
		report: report,
		known:  make(map[*store.Object]*tracked),
		live:   make(map[string]*tracked),
	}
}

// printOf returns the deep print of the shared parts of an object.
func (d *detector) printOf(o *store.Object) string {
	return dump.ForHash(struct {
		Value  any
		Labels store.Labels
		Fields []string
	}{d.valueOf(o), o.Labels, o.Fields})
}

// valueOf returns the object's value. It is read by reflection, not through the
// pointer to it, so that the print shows the value alone.
func (d *detector) valueOf(o *store.Object) any {
	return reflect.ValueOf(d.schema.Pointer(o)).Elem().Interface()
}

// locked runs f under the lock, compares one more object, and then reports the
// changes without the lock, since OnError may call the engine.
func (d *detector) locked(f func()) {
	d.mu.Lock()
	f()
	if len(d.all) > 0 {
		d.next = (d.next + 1) % len(d.all)
		d.compare(d.all[d.next])
	}
	found := d.found
	d.found = nil
	d.mu.Unlock()
	for _, err := range found {
		// A panic in OnError is ignored.
		_ = usercode.Call("OnError", "", func() { d.report(err) })
	}
}

// compare checks that an object is unchanged.
func (d *detector) compare(t *tracked) {
	if t.reported {
		return
	}
	if now := d.printOf(t.object); now != t.before {
		t.reported = true
		d.found = append(d.found, &MutationError{t.object.Key, t.object.Revision, t.before, now})
	}
}

// track tracks o from now on.
func (d *detector) track(o *store.Object) *tracked {
	if t := d.known[o]; t != nil {
		d.compare(t)
		return t
	}
	t := &tracked{object: o, before: d.printOf(o), place: len(d.all)}
	d.known[o] = t
	d.all = append(d.all, t)
	return t
}

// current tracks o as the state of its key, unless a newer one is tracked.
func (d *detector) current(o *store.Object) {
	if d.known[o] != nil {
		d.compare(d.known[o])
		return
	}
	t, was := d.track(o), d.live[o.Key]
	switch {
	case was == nil:
		d.live[o.Key] = t
	case was.object.Revision <= o.Revision:
		d.live[o.Key] = t
		d.retire(was)
	default:
		d.retire(t)
	}
}

// gone records that the key was deleted at rev.
func (d *detector) gone(key string, rev store.Revision) {
	if was := d.live[key]; was != nil && was.object.Revision < rev {
		delete(d.live, key)
		d.retire(was)
	}
}

// retire tracks a superseded object for a while longer.
func (d *detector) retire(t *tracked) {
	d.compare(t)
	d.retired = append(d.retired, t)
	if len(d.retired) > maxRetired {
		d.compare(d.retired[0])
		d.forget(d.retired[0])
		d.retired[0] = nil
		d.retired = d.retired[1:]
	}
}

func (d *detector) forget(t *tracked) {
	delete(d.known, t.object)
	last := d.all[len(d.all)-1]
	d.all[t.place], last.place = last, t.place
	d.all[len(d.all)-1] = nil
	d.all = d.all[:len(d.all)-1]
}

// event tracks the objects of an event.
func (d *detector) event(ev store.Event) {
	switch ev.Type {
	case store.Added, store.Modified:
		d.current(ev.Object)
	case store.Deleted:
		d.gone(ev.Object.Key, ev.Revision)
	case store.Emitted:
		d.emitted(ev.Object)
	}
}

// emitted tracks an emitted value, which never is the state of its key.
func (d *detector) emitted(o *store.Object) {
	if d.known[o] == nil {
		d.retire(d.track(o))
	}
}

// audit compares every tracked object.
func (d *detector) audit() {
	d.locked(func() {
		for _, t := range d.all {
			d.compare(t)
		}
	})
}
