package informer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
	"github.com/watchmill/watchmill/usercode"
)

// Quarantined is an object for which Transform or an IndexFunc has failed.
type Quarantined[T any] struct {
	// Object is the source's or, if an IndexFunc has failed, as Transform has left it.
	Object *Object[T]
	// Err is why.
	Err *ItemError
}

// quarantined is the untyped [Quarantined].
type quarantined struct {
	object *store.Object
	err    *ItemError
}

// transformer calls the functions of the configuration, once for each state of each
// object, and applies the ItemErrorPolicy if they fail.
type transformer struct {
	cfg    *settings
	report func(error)

	mu sync.Mutex // guards what follows
	// indexFuncs are the user's functions of the present indexes.
	indexFuncs cache.Indexers[*store.Object]
	// failing are the objects in quarantine, by key.
	failing map[string]quarantined
	// failed is the error that ends the informer, under [Fail].
	failed error
}

// apply returns the object to store; false if Transform failed.
func (t *transformer) apply(o *store.Object) (*store.Object, bool) {
	if t.cfg.itemErrors == Quarantine {
		t.release(o.Key)
	}
	if t.cfg.transform == nil {
		return o, true
	}
	var transformed *store.Object
	var err error
	if panicked := usercode.Call("Config.Transform", o.Key, func() { transformed, err = t.cfg.transform(o) }); panicked != nil {
		err = panicked
	}
	if err != nil {
		t.fail(o, &ItemError{Func: "Transform", Key: o.Key, Revision: o.Revision, Err: err})
		return nil, false
	}
	return transformed, true
}

// fail applies the policy to an object.
func (t *transformer) fail(o *store.Object, err *ItemError) {
	t.mu.Lock()
	switch t.cfg.itemErrors {
	case Quarantine:
		if t.failing == nil {
			t.failing = make(map[string]quarantined)
		}
		if known, ok := t.failing[o.Key]; !ok || known.object == o { // another is newer: see AddIndexers
			t.failing[o.Key] = quarantined{o, err}
		}
	case Fail:
		t.failed = cmp.Or(t.failed, error(err))
	}
	t.mu.Unlock()
	t.report(err)
}

// release ends the quarantine of the object under key.
func (t *transformer) release(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failing, key)
}

// releaseAbsent ends the quarantine of objects that no longer exist.
func (t *transformer) releaseAbsent(has func(key string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.failing {
		if !has(key) {
			delete(t.failing, key)
		}
	}
}

// failure returns the error that ends the informer, if any.
func (t *transformer) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// quarantined returns the objects in quarantine, in the order of the keys.
func (t *transformer) quarantined() []quarantined {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.failing), func(a, b quarantined) int { return cmp.Compare(a.object.Key, b.object.Key) })
}

// same reports whether two states under one key are of the same object.
func (t *transformer) same(a, b *store.Object) bool {
	if t.cfg.identity == nil {
		return a.Created == b.Created
	}
	var same bool
	panicked := usercode.Call("Config.Identity", b.Key, func() { same = t.cfg.identity(a) == t.cfg.identity(b) })
	if panicked != nil {
		t.report(&ItemError{Func: "Identity", Key: b.Key, Revision: b.Revision, Err: panicked})
		return a.Created == b.Created
	}
	return same
}

// recreated reports whether a state, for which Transform has failed, is known to be of another
// object than the state before. Identity cannot tell: it is for transformed objects.
func (t *transformer) recreated(p pair) bool {
	return t.cfg.identity == nil && p.old.Created != p.now.Created
}

// indexers returns index functions for the store that never fail: an object for
// which a function fails has no values in that index.
func (t *transformer) indexers(from cache.Indexers[*store.Object]) (cache.Indexers[*store.Object], error) {
	safe := make(cache.Indexers[*store.Object], len(from))
	for name, values := range from {
		if values == nil {
			return nil, &cache.IndexFuncError{Index: name, Err: cache.ErrNoIndexFunc}
		}
		safe[name] = func(o *store.Object) ([]string, error) { return t.values(name, values, o), nil }
	}
	return safe, nil
}

func (t *transformer) values(name string, of cache.IndexFunc[*store.Object], o *store.Object) (values []string) {
	var err error
	if panicked := usercode.Call("IndexFunc", o.Key, func() { values, err = of(o) }); panicked != nil {
		err = panicked
	}
	if err == nil {
		return values
	}
	t.fail(o, &ItemError{Func: fmt.Sprintf("Indexers[%s]", name), Key: o.Key, Revision: o.Revision, Err: err})
	return nil
}

// indexed records the user's functions of indexes that were added.
func (t *transformer) indexed(added cache.Indexers[*store.Object]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(t.indexFuncs, added)
}

// valuesOfWrite returns the values in the named index of an object that did not come from the
// source; none if the function fails, which has no other consequence.
func (t *transformer) valuesOfWrite(name string, o *store.Object) (values []string) {
	t.mu.Lock()
	of := t.indexFuncs[name]
	t.mu.Unlock()
	var err error
	if panicked := usercode.Call("IndexFunc", o.Key, func() { values, err = of(o) }); panicked != nil || err != nil {
		return nil
	}
	return values
}
