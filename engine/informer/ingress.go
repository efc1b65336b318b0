package informer

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/store"
)

// Quarantined is an object that could not be taken as it is.
type Quarantined[T any] struct {
	// Object is as the source has it.
	Object *Object[T]
	// Err is why.
	Err *ItemError
}

// ingress runs the user's functions on what comes in, each once, and does by
// the policy what has to be done if they fail.
type ingress[T any] struct {
	transform func(T) (T, error)
	identity  func(*Object[T]) string
	policy    ItemErrorPolicy
	report    func(error)

	mu sync.Mutex // guards what follows
	// ill are the objects in quarantine, by key.
	ill map[string]Quarantined[T]
	// failed is why the informer must end, under [Fail].
	failed error
}

// take returns the object as it is to be stored; false if it cannot be.
func (in *ingress[T]) take(o *Object[T]) (*Object[T], bool) {
	if in.policy == Quarantine {
		in.heal(o.Key)
	}
	if in.transform == nil {
		return o, true
	}
	var value T
	var err error
	if panicked := contained("Config.Transform", o.Key, func() { value, err = in.transform(o.Value) }); panicked != nil {
		err = panicked
	}
	if err != nil {
		in.fail(o, &ItemError{Func: "Transform", Key: o.Key, Revision: o.Revision, Err: err})
		return nil, false
	}
	taken := *o
	taken.Value = value
	return &taken, true
}

// fail does by the policy.
func (in *ingress[T]) fail(o *Object[T], err *ItemError) {
	in.mu.Lock()
	switch in.policy {
	case Quarantine:
		if in.ill == nil {
			in.ill = make(map[string]Quarantined[T])
		}
		in.ill[o.Key] = Quarantined[T]{Object: o, Err: err}
	case Fail:
		in.failed = cmp.Or(in.failed, error(err))
	}
	in.mu.Unlock()
	in.report(err)
}

// heal takes the object under key out of quarantine.
func (in *ingress[T]) heal(key string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.ill, key)
}

// healAbsent takes those out of quarantine of which has says that they are not
// there any more.
func (in *ingress[T]) healAbsent(has func(key string) bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for key := range in.ill {
		if !has(key) {
			delete(in.ill, key)
		}
	}
}

// failure returns why the informer must end, nil if it need not.
func (in *ingress[T]) failure() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.failed
}

// quarantined returns who is in quarantine, in the order of the keys.
func (in *ingress[T]) quarantined() []Quarantined[T] {
	in.mu.Lock()
	defer in.mu.Unlock()
	list := make([]Quarantined[T], 0, len(in.ill))
	for _, q := range in.ill {
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b Quarantined[T]) int { return cmp.Compare(a.Object.Key, b.Object.Key) })
	return list
}

// same reports whether two states with one key are of one object.
func (in *ingress[T]) same(a, b *Object[T]) bool {
	if in.identity == nil {
		return a.Created == b.Created
	}
	var same bool
	panicked := contained("Config.Identity", b.Key, func() { same = in.identity(a) == in.identity(b) })
	if panicked != nil {
		in.report(&ItemError{Func: "Identity", Key: b.Key, Revision: b.Revision, Err: panicked})
		return a.Created == b.Created
	}
	return same
}

// indexers returns index functions for the store that never fail: an object
// that a function fails for has no values in its index.
func (in *ingress[T]) indexers(from store.Indexers[T]) (store.Indexers[*Object[T]], error) {
	safe := make(store.Indexers[*Object[T]], len(from))
	for name, values := range from {
		if values == nil {
			return nil, &store.IndexFuncError{Index: name, Err: errNilIndexFunc}
		}
		safe[name] = func(o *Object[T]) ([]string, error) { return in.values(name, values, o), nil }
	}
	return safe, nil
}

func (in *ingress[T]) values(name string, of store.IndexFunc[T], o *Object[T]) (values []string) {
	var err error
	if panicked := contained("IndexFunc", o.Key, func() { values, err = of(o.Value) }); panicked != nil {
		err = panicked
	}
	if err == nil {
		return values
	}
	in.fail(o, &ItemError{Func: fmt.Sprintf("Indexers[%s]", name), Key: o.Key, Revision: o.Revision, Err: err})
	return nil
}
