package load

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
)

// following is a session of a watcher that follows the engine, which another goroutine can end.
type following struct {
	leave context.CancelCauseFunc
	// complete is its watch when that had everything; nil before.
	complete atomic.Pointer[engine.WatchInfo]
}

// endEvery is the time between two looks at the watches.
const endEvery = 5 * time.Millisecond

// endFollowing ends the sessions of watchers that follow the engine once their watches have
// everything, until stop is called. Such a watcher does not know by itself if its last event is lost,
// or if it conflates: the updates of engine.Follow have no revision for the end of a difference, and
// there is none for a difference that is empty. It must be called when everything is written.
func (r *run) endFollowing() (stop func()) {
	watchers := map[string]*watcher{}
	for w := range r.everyWatcher() {
		if follows(w.group.spec) {
			watchers[w.name()] = w
		}
	}
	if len(watchers) == 0 {
		return func() {}
	}
	return repeat(context.Background(), endEvery, func() { endComplete(r.engine.Watches, watchers) })
}

// endComplete ends the sessions whose watches have everything.
func endComplete(watches func() []engine.WatchInfo, watchers map[string]*watcher) {
	// Sessions before watches, since a session that has begun since must not end by what
	// the watch of an earlier one had.
	sessions := map[string]*following{}
	for name, w := range watchers {
		sessions[name] = w.following.Load()
	}
	for _, info := range watches() {
		s := sessions[info.Name]
		if s != nil && info.Revision >= watchers[info.Name].need {
			s.complete.Store(&info)
			s.leave(errWritten)
		}
	}
}

// passed records that the watcher has received everything that watch has delivered, and
// returns the reason to stop there, if any.
func (w *watcher) passed(watch *engine.WatchInfo) error {
	if watch.Lost > 0 {
		w.mu.Lock()
		w.trail.Gap() // what came and went leaves no event
		w.mu.Unlock()
	}
	return w.reached(watch.Revision)
}
