package objectcache

import (
	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// sink is the sink of one Reflector. It keeps the newest state of one object,
// and so always has room.
type sink struct {
	cache *cache
	entry *entry
}

// Offer takes an update. It ends the Reflector once the object cannot change any
// more, or has no reference.
func (s *sink) Offer(u reflector.Update) actors.Verdict {
	verdict := s.offer(u)
	if u.Kind != reflector.Unavailable {
		s.entry.advance(s, u.Revision)
	}
	return verdict
}

func (s *sink) offer(u reflector.Update) actors.Verdict {
	switch u.Kind {
	case reflector.Replace:
		return s.take(s.find(u.Objects))
	case reflector.Changes:
		if o, changed := s.newest(u.Events); changed {
			return s.take(o)
		}
	case reflector.Unavailable:
		if u.Final {
			s.entry.unreachable(s, u.Err)
		}
	}
	return actors.Accepted
}

func (s *sink) take(o *store.Object) actors.Verdict {
	goOn, first := s.entry.take(s, o, s.immutable(o), s.cache.now())
	if first && goOn {
		s.cache.recheck(s.entry) // arms the idle timer
	}
	if !goOn {
		return actors.Gone
	}
	return actors.Accepted
}

// find returns the object among those under the key as prefix, or nil.
func (s *sink) find(objects []*store.Object) *store.Object {
	for _, o := range objects {
		if o.Key == s.entry.key {
			return o
		}
	}
	return nil
}

// newest returns the object after the events, nil if it is deleted, and whether any of
// them is about it.
func (s *sink) newest(events []store.Event) (o *store.Object, changed bool) {
	for _, ev := range events {
		if ev.Key() != s.entry.key {
			continue // of a key below
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

// immutable calls Config.Immutable.
func (s *sink) immutable(o *store.Object) (yes bool) {
	if o == nil {
		return false
	}
	if err := usercode.Call("Config.Immutable", o.Key, func() { yes = s.cache.cfg.immutable(o) }); err != nil {
		s.cache.report(err)
		return false
	}
	return yes
}

// failed gets each error of the source.
func (s *sink) failed(err error) {
	s.entry.sourceFailed(s, err)
	s.cache.report(&SourceError{Key: s.entry.key, Err: err})
}
