package objectcache

import (
	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// feed is the sink of one Reflector. It takes the newest state of one object,
// and so always has room.
type feed struct {
	cache *cache
	entry *entry
}

// Offer takes an update. It ends the Reflector once the object cannot change any
// more, or nobody wants it.
func (f *feed) Offer(u reflector.Update) actors.Verdict {
	switch u.Kind {
	case reflector.Replace:
		return f.take(f.find(u.Objects))
	case reflector.Changes:
		if o, changed := f.newest(u.Events); changed {
			return f.take(o)
		}
	case reflector.Unavailable:
		if u.Final {
			f.entry.lose(f, u.Err)
		}
	}
	return actors.Accepted
}

func (f *feed) take(o *store.Object) actors.Verdict {
	goOn, first := f.entry.take(f, o, f.immutable(o), f.cache.now())
	if first && goOn {
		f.cache.ask(f.entry) // from now on it can be idle
	}
	if !goOn {
		return actors.Gone
	}
	return actors.Accepted
}

// find returns the object among those under the key as prefix, or nil.
func (f *feed) find(objects []*store.Object) *store.Object {
	for _, o := range objects {
		if o.Key == f.entry.key {
			return o
		}
	}
	return nil
}

// newest returns what the events leave of the object, nil if it is deleted, and
// whether any of them is about it.
func (f *feed) newest(events []store.Event) (o *store.Object, changed bool) {
	for _, ev := range events {
		if ev.Key() != f.entry.key {
			continue // of a deeper key
		}
		switch ev.Type {
		case store.Added, store.Modified:
			o, changed = ev.Object, true
		case store.Deleted:
			o, changed = nil, true
		}
	}
	return o, changed
}

// immutable asks Config.Immutable.
func (f *feed) immutable(o *store.Object) (yes bool) {
	if o == nil {
		return false
	}
	if err := backend.Contain("Config.Immutable", o.Key, func() { yes = f.cache.cfg.immutable(o) }); err != nil {
		f.cache.report(err)
		return false
	}
	return yes
}

// failed is told each error of the source.
func (f *feed) failed(err error) {
	f.entry.trouble(f, err)
	f.cache.report(&SourceError{Key: f.entry.key, Err: err})
}
