package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// followers are the watches of an engine's sources, by the prefix that each is
// under. A publication wakes those that it concerns. That nothing concerned them
// the others are told a little later, so that they know how far they have got.
//
//	publication ──each event's key──▶ under[""], under["a"], under["a/b"] ──▶ told at once
//	     └────────────────────────────▶ a round over all, a share per period ──▶ told of progress
//
// Who is not told does not fall behind: it skips what the index has seen go by.
type followers struct {
	clock  actors.Clock
	report func(error) // is told of each Notify that panics

	mu    sync.Mutex
	all   []*notification
	under map[string]*group
	// seen is the end of the window that the index was last shown, and reached its
	// revision.
	seen    store.Seq
	reached Revision
	// epoch and generation are those of the snapshot that it was shown.
	epoch, generation uint64
	// blind is the position up to which the index has not seen everything.
	blind store.Seq
	// turn is the next of all in the round, and left how many are still to come.
	turn, left int
	timer      actors.Timer // nil unless a round is on
	ended      bool

	// touched are the groups that what is being shown concerns, and concerned who
	// is to be told of it. The cache's turn's.
	touched   []*group
	concerned []*notification
}

// Progress comes within a period to as many as a share, and to 10,000 within a
// second. What a share does with it, a few milliseconds of work, does not show
// beside the events.
const (
	progressPeriod = 100 * time.Millisecond
	progressShare  = 1000
)

// notification is how a follower is told to look, once for each time that it has
// looked.
type notification struct {
	prefix string
	// telling is held while tell runs, so that remove can wait for it.
	telling sync.Mutex
	tell    func() // nil once removed, or broken
	// broken is the panic of tell, nil if it had none.
	broken atomic.Pointer[error]

	// The followers' lock guards the rest.
	again bool      // it has looked since it was told
	slot  int       // in all
	place int       // in the group of its prefix
	since store.Seq // where the index was when it came to know of the follower
	// at is where the follower was when it looked, and through the revision of
	// that.
	at      store.Seq
	through Revision
	// first is the position of the first event for it that it may not have read,
	// and last the one behind the newest. If last is not beyond at there is none.
	first, last store.Seq
}

// add puts in a follower of what is under prefix.
func (f *followers) add(prefix string, tell func()) *notification {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := &notification{prefix: prefix, tell: tell, slot: len(f.all), since: f.seen}
	f.all = append(f.all, n)
	f.join(n)
	return n
}

// remove takes a follower out. It waits for a notification that is running.
func (f *followers) remove(n *notification) {
	f.mu.Lock()
	f.leave(n)
	f.mu.Unlock()
	n.telling.Lock()
	n.tell = nil
	n.telling.Unlock()
}

func (f *followers) leave(n *notification) {
	last := len(f.all) - 1
	f.all[n.slot], f.all[last].slot = f.all[last], n.slot
	f.all[last] = nil
	f.all = f.all[:last]
	if f.left > 0 {
		f.left = last // the round may pass by the one that has moved: go round once more
	}
	f.part(n)
}

// due reports whether to tell it, which is then no longer due.
func (n *notification) due() bool {
	was := n.again
	n.again = false
	return was
}

// call has a follower told of a publication.
func (f *followers) call(n *notification) {
	if n.due() {
		f.concerned = append(f.concerned, n)
	}
}

func (f *followers) callAll(of []*notification) {
	for _, n := range of {
		f.call(n)
	}
}

// announce tells whom the newest snapshot concerns. It is called in the cache's
// turn.
func (e *core) announce() {
	f := &e.sources
	show(f, e.published.Load())
	defer func() {
		clear(f.concerned)
		f.concerned = f.concerned[:0]
	}()
	f.tell(f.concerned)
}

// arm sees to it that the round goes on.
func (f *followers) arm() {
	if f.timer == nil && f.left > 0 && !f.ended {
		f.timer = f.clock.AfterFunc(progressPeriod, f.progress)
	}
}

// progress tells a share of the followers how far they have got.
func (f *followers) progress() { f.tell(f.behind()) }

// behind goes on with the round. It returns who of its share knows less than the
// index.
func (f *followers) behind() (those []*notification) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timer = nil
	share := min(f.left, progressShare)
	f.left -= share
	f.arm() // comes first: the clock may be the user's, and panic
	for range share {
		f.turn = (f.turn + 1) % len(f.all)
		if n := f.all[f.turn]; n.through < f.reached && n.due() {
			those = append(those, n)
		}
	}
	return those
}

// end tells everybody for the last time. The engine is closed already.
func (f *followers) end() {
	defer f.disarm()
	f.tell(f.last())
}

func (f *followers) last() (those []*notification) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for _, n := range f.all {
		if n.due() {
			those = append(those, n)
		}
	}
	return those
}

func (f *followers) disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
}

// tell has them look. Those who come behind one whose Notify ends the goroutine
// ([runtime.Goexit], as by t.FailNow) are told while that unwinds.
func (f *followers) tell(those []*notification) {
	defer func() {
		if len(those) > 0 {
			f.tell(those)
		}
	}()
	for len(those) > 0 {
		n := those[0]
		those = those[1:]
		if err := n.ring(); err != nil {
			f.report(err)
		}
	}
}

// ring tells the follower, unless it is gone. If that panics it is not told
// again, and its watch ends.
func (n *notification) ring() error {
	n.telling.Lock()
	defer n.telling.Unlock()
	if n.tell == nil {
		return nil
	}
	err := usercode.Call("WatchOptions.Notify", "", n.tell)
	if err != nil {
		n.tell = nil
		n.broken.Store(&err)
	}
	return err
}
