package waiting

import (
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Follower is what a watch needs to wait for events: its place in a [List] and the
// function that notifies its consumer.
type Follower struct {
	// slot is the place in a list, guarded by the backend's lock.
	slot int
	// alone is the follower itself, for a Take of no other.
	alone [1]*Follower

	mu     sync.Mutex // held while notify runs, so that Close waits for it
	notify func()
	end    error // why the watch ended; nil while it runs
}

// A follower's slot while it is not in a list.
const (
	notWaiting = -1
	closed     = -2 // and it never waits again
)

// Init makes f a follower whose consumer notify calls.
func (f *Follower) Init(notify func()) {
	f.slot, f.notify = notWaiting, notify
	f.alone[0] = f
}

// Wake calls notify, for the consumer to call Next. If that panics, the watch ends.
// The caller must not hold the backend's lock.
func (f *Follower) Wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end == nil {
		f.end = usercode.Call("WatchOptions.Notify", "", f.notify)
	}
}

// Ended returns why the watch ended, nil if it did not.
func (f *Follower) Ended() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// Fail ends the watch with err, unless it has ended, and returns why it ended.
func (f *Follower) Fail(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end == nil {
		f.end = err
	}
	return f.end
}

// Close removes the watch from l, whose lock is given, if it is there. It waits for
// a notification that is running.
func (f *Follower) Close(lock sync.Locker, l *List) {
	lock.Lock()
	l.remove(f)
	lock.Unlock()
	_ = f.Fail(store.ErrClosed)
}

// List is the followers that have read everything, in the order in which they
// came to wait; the last takes the place of one that leaves early. The backend's
// lock guards it.
type List struct{ followers []*Follower }

// Add makes f wait, unless it does already or was closed.
func (l *List) Add(f *Follower) {
	if f.slot == notWaiting {
		f.slot = len(l.followers)
		l.followers = append(l.followers, f)
	}
}

// remove takes out f, if it waits. It never waits again.
func (l *List) remove(f *Follower) {
	if f.slot >= 0 {
		last := len(l.followers) - 1
		l.followers[f.slot] = l.followers[last]
		l.followers[f.slot].slot = f.slot
		l.followers[last] = nil
		l.followers = l.followers[:last]
	}
	f.slot = closed
}

// Take removes and returns all waiting followers. It does not allocate, and neither does
// the next Add, if there is one only: the usual case, a cache.
func (l *List) Take() []*Follower {
	followers := l.followers
	for _, f := range followers {
		f.slot = notWaiting
	}
	if len(followers) == 1 {
		only := followers[0]
		followers[0], l.followers = nil, followers[:0]
		return only.alone[:]
	}
	l.followers = nil
	return followers
}

// WakeAll notifies followers, including those behind one whose notify ends the goroutine. The
// caller must not hold the backend's lock.
func WakeAll(followers []*Follower) {
	if len(followers) == 1 { // the usual case, without the cost of the defer
		followers[0].Wake()
		return
	}
	usercode.Each(followers, (*Follower).Wake)
}
