package mutation

import (
	"reflect"
	"sync"

	"k8s.io/utils/dump"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

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
	// settled is the newest revision of a list or a deletion: keys of an older list may be gone.
	settled store.Revision
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
	return d.print(o, func(value any) any {
		return struct {
			Value  any
			Labels store.Labels
			Fields []string
		}{value, o.Labels, o.Fields}
	})
}

// printValue returns the deep print of an object's value.
func (d *detector) printValue(o *store.Object) string {
	return d.print(o, func(value any) any { return value })
}

// print prints the parts that it is given for the object's value. It dereferences the pointer
// to the value by reflection, so that the print shows the value alone. If the schema
// panics, the print is empty, and stays so for an object that does not change.
func (d *detector) print(o *store.Object, parts func(value any) any) (text string) {
	_ = usercode.Call("Schema.Pointer", o.Key, func() {
		text = dump.ForHash(parts(reflect.ValueOf(d.schema.Pointer(o)).Elem().Interface()))
	})
	return text
}

// locked runs f under the lock, and then reports the changes that were found, without the
// lock, since report may call the backend.
func (d *detector) locked(f func()) {
	// A panic in report is ignored.
	usercode.Each(d.find(f), func(err error) { _ = usercode.Call("OnError", "", func() { d.report(err) }) })
}

// find runs f under the lock, compares one more object, and returns the changes that were
// found. It gives up the lock even if the schema ends the goroutine: the next call then
// returns the changes.
func (d *detector) find(f func()) (found []error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	if len(d.all) > 0 {
		d.next = (d.next + 1) % len(d.all)
		d.compare(d.all[d.next])
	}
	found, d.found = d.found, nil
	return found
}

// compare checks that an object is unchanged.
func (d *detector) compare(t *tracked) {
	if t.reported {
		return
	}
	if now := d.printOf(t.object); now != t.before {
		t.reported = true
		d.found = append(d.found, &Error{t.object.Key, t.object.Revision, t.before, now})
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

// listed tracks the objects of a list at rev. An object of a past state is not taken for the
// state of its key, which may be gone.
func (d *detector) listed(objects []*store.Object, rev store.Revision) {
	past := rev < d.settled
	d.settled = max(d.settled, rev)
	for _, o := range objects {
		if past && d.known[o] == nil && d.live[o.Key] == nil {
			d.briefly(o)
		} else {
			d.current(o)
		}
	}
}

// gone records that the key was deleted at rev.
func (d *detector) gone(key string, rev store.Revision) {
	d.settled = max(d.settled, rev)
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
		d.briefly(ev.Object)
	}
}

// briefly tracks an object that is not the state of its key, such as an emitted
// value, for as long as a superseded one.
func (d *detector) briefly(o *store.Object) {
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

// givenValue is a value as the caller of a write gave it.
type givenValue struct {
	// object has the value. It is the draft itself, unless storage puts a revision
	// into that.
	object *store.Object
	before string
}

// given prints the value of a draft before it is written. If the schema panics, the write
// itself fails with that.
func (d *detector) given(draft *store.Object) givenValue {
	o := draft
	if d.schema.SetRevision != nil {
		_ = usercode.Call("Schema.Clone", draft.Key, func() { o = d.schema.Clone(draft) })
	}
	return givenValue{o, d.printValue(o)}
}

// wrote calls track for o, and reports a value that has changed since before the write.
func (d *detector) wrote(o *store.Object, given givenValue, track func(*store.Object)) {
	d.locked(func() {
		track(o)
		t := d.known[o]
		if now := d.printValue(given.object); now != given.before && t != nil && !t.reported {
			t.reported = true
			d.found = append(d.found, &Error{o.Key, o.Revision, given.before, now})
		}
	})
}
