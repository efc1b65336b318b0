package dispatcher

import (
	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/usercode"
)

// signals collects the watches to signal. Those with handlers are woken many at once, the
// others are signalled one by one.
type signals struct {
	onPool, onOwn wakes
	others        []*watcher.Member
}

// wakes are the mailboxes to wake on one executor.
type wakes struct {
	executor actors.Executor
	boxes    []*actors.WakeBox
}

// add adds w to the next send.
func (s *signals) add(w *watcher.Member) {
	if box := w.Box(); box != nil {
		to := s.of(w)
		to.boxes = append(to.boxes, box)
		return
	}
	s.others = append(s.others, w)
}

// of returns the wakes of the executor that w's handler runs on.
func (s *signals) of(w *watcher.Member) *wakes {
	if w.OnPool() {
		return &s.onPool
	}
	return &s.onOwn
}

// executorOf returns the executor that w's handler runs on.
func (s *signals) executorOf(w *watcher.Member) actors.Executor { return s.of(w).executor }

// maxCollected is how many watches with handlers are collected for one executor when their
// events are published already.
const maxCollected = 64

// addPublished is add for watches whose events are published. It signals those that are
// collected as soon as they are many, so that their handlers begin while the dispatcher looks
// for more watches.
func (s *signals) addPublished(w *watcher.Member, stats *Stats) {
	s.add(w)
	if to := s.of(w); len(to.boxes) >= maxCollected {
		stats.Wakes.Add(to.send())
	}
}

// send signals the collected watches.
func (s *signals) send(stats *Stats) {
	stats.Wakes.Add(s.onPool.send() + s.onOwn.send() + uint64(len(s.others)))
	s.signalOthers()
}

func (w *wakes) send() (n uint64) {
	if n = uint64(len(w.boxes)); n > 0 {
		actors.WakeAll(w.executor, w.boxes)
		clear(w.boxes)
		w.boxes = w.boxes[:0]
	}
	return n
}

// signalOthers signals watches without handlers, even if a Notify function ends the goroutine
// ([runtime.Goexit], such as that of t.FailNow).
func (s *signals) signalOthers() {
	defer func() {
		clear(s.others)
		s.others = s.others[:0]
	}()
	usercode.Each(s.others, (*watcher.Member).Signal)
}
