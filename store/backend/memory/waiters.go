package memory

// waiters are the watchers that have read everything, in the order in which
// they came to wait, except that one that leaves early makes room for the last.
// The backend's lock guards it.
type waiters struct {
	list []*watcher
}

// A watcher's slot while it is not in the list.
const (
	notWaiting = -1
	closed     = -2 // and will not be again
)

// add makes w wait, unless it does already or was closed.
func (s *waiters) add(w *watcher) {
	if w.slot == notWaiting {
		w.slot = len(s.list)
		s.list = append(s.list, w)
	}
}

// remove makes w wait no longer; it may not have been waiting.
func (s *waiters) remove(w *watcher) {
	if w.slot < 0 {
		return
	}
	last := len(s.list) - 1
	s.list[w.slot] = s.list[last]
	s.list[w.slot].slot = w.slot
	s.list[last] = nil
	s.list = s.list[:last]
	w.slot = notWaiting
}

// take returns all who wait, and makes them wait no longer.
func (s *waiters) take() []*watcher {
	list := s.list
	for _, w := range list {
		w.slot = notWaiting
	}
	s.list = nil
	return list
}

// wakeAll notifies watchers. The caller must not hold the backend's lock.
func wakeAll(watchers []*watcher) {
	for _, w := range watchers {
		w.wake()
	}
}
