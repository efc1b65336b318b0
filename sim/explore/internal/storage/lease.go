package storage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/sim/judge"
)

// lease says when storage must delete the object under a key.
type lease struct {
	key     string
	expires time.Time
}

// leases are those of one storage, in the order of their expiry and then of their keys.
type leases []lease

// set records when the object under key expires; the zero time means never.
func (l *leases) set(key string, expires time.Time) {
	*l = slices.DeleteFunc(*l, func(old lease) bool { return old.key == key })
	if expires.IsZero() {
		return
	}
	*l = append(*l, lease{key, expires})
	slices.SortFunc(*l, func(a, b lease) int {
		return cmp.Or(a.expires.Compare(b.expires), cmp.Compare(a.key, b.key))
	})
}

// remove records that the object under key does not expire.
func (l *leases) remove(key string) { l.set(key, time.Time{}) }

// of returns when the object under key expires; the zero time means never.
func (l leases) of(key string) time.Time {
	for _, one := range l {
		if one.key == key {
			return one.expires
		}
	}
	return time.Time{}
}

// due returns the key of the first lease if that has expired by now.
func (l leases) due(now time.Time) (key string, ok bool) {
	if len(l) == 0 || l[0].expires.After(now) {
		return "", false
	}
	return l[0].key, true
}

// reaperClock is the clock of the storage in memory, which deletes expired objects when a
// timer fires. After each of these it calls reap, which records them in the history.
type reaperClock struct {
	clock.Clock
	reap func()
}

// AfterFunc arms a timer that calls f and then reap.
func (c reaperClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.Clock.AfterFunc(d, func() {
		f()
		c.reap()
	})
}

// reap records the deletions that storage has made by itself. They must be of the expired
// objects, in the order of their expiry.
func (s *Storage[T]) reap() {
	at, err := s.Unwrap().Revision(context.Background())
	for err == nil && s.History.Newest() < at {
		key, ok := s.leases.due(s.clock.Now())
		if !ok {
			s.Fail(judge.Failed(judge.Expires, "storage", "it is at %d, but only %d changes are accounted for", at, s.History.Newest()-judge.First))
			return
		}
		s.leases.set(key, time.Time{})
		s.trace.Call("expire", s.History.Delete(key), 1, nil)
		s.History.Date(s.clock.Now(), time.Time{})
		s.stamp()
	}
}

// Overdue returns a failure if an object has outlived its TTL. After a clock correction it
// returns nil, since the expiry is unknown.
func (s *Storage[T]) Overdue() error {
	if key, due := s.leases.due(s.clock.Now()); due && !s.ClockJumped {
		return judge.Failed(judge.Expires, "storage", "%q is still there", key)
	}
	return nil
}

// Expiry returns when storage must delete the object under key; the zero time means never.
func (s *Storage[T]) Expiry(key string) time.Time { return s.leases.of(key) }

// until returns when an object with that TTL expires; the zero time means never.
func (s *Storage[T]) until(ttl time.Duration) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return s.clock.Now().Add(ttl)
}
