package engine

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// WatchEnd is the end of a watch.
type WatchEnd struct {
	// Name is the name of the watch, Why the reason that its Err returns.
	Name string
	Why  error
	// At is when it ended; zero if the host's clock has panicked.
	At time.Time
	// Delivered is how many events it had delivered.
	Delivered uint64
}

// Reason returns why it ended in a word: "stopped", "expired", "slow", "panicked",
// "deadline", "closed", or "failed" for anything else.
func (e WatchEnd) Reason() string {
	switch failed, panicked := watcher.ByHandler(e.Why); {
	case panicked:
		return "panicked"
	case failed:
		return "failed"
	}
	for _, r := range []struct {
		is   error
		word string
	}{
		{ErrStopped, "stopped"}, {ErrExpired, "expired"}, {ErrSlowConsumer, "slow"},
		{ErrDeadline, "deadline"}, {ErrEngineClosed, "closed"},
	} {
		if errors.Is(e.Why, r.is) {
			return r.word
		}
	}
	return "failed"
}

// keptEnds is how many ends of watches an engine keeps.
const keptEnds = 64

// ends are the last ends of watches, in a ring.
type ends struct {
	mu   sync.Mutex
	last []WatchEnd
	// next is the index of the next end, once the ring is full: that of the oldest.
	next int
}

func (s *ends) add(end WatchEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) < keptEnds {
		s.last = append(s.last, end)
		return
	}
	s.last[s.next] = end
	s.next = (s.next + 1) % keptEnds
}

// newest returns the ends, the newest first.
func (s *ends) newest() []WatchEnd {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Concat(s.last[s.next:], s.last[:s.next])
	slices.Reverse(list)
	return list
}

// observed passes the dispatcher's observations to the engine's observers.
func (e *core) observed(cfg dispatcher.Config) dispatcher.Config {
	cfg.OnEnd, cfg.OnStall = e.watchEnded, e.watchStalled
	if m := e.metrics(); m != nil {
		cfg.OnRound = func(prev, next *store.Snapshot) { e.measureRound(m, prev, next) }
		cfg.Feed.Delivered = func(events []store.Event) { e.measure(m, StageDelivered, events, e.clockNow) }
	}
	return cfg
}

// watchEnded is called for each watch that has left the dispatcher.
func (e *core) watchEnded(w *watcher.Member) {
	end := WatchEnd{Name: w.Name(), Why: w.Err(), Delivered: w.Delivered()}
	e.contain("Clock.Now", func() { end.At = e.clockNow() }) // the clock may be the user's
	e.ends.add(end)
	if level := levelOf(end); e.logs(level) { // the values below take memory
		e.log(level, "watch ended", "watch", end.Name, "why", end.Why, "delivered", end.Delivered)
	}
	if e.cfg.onEnd != nil {
		e.contain("Config.OnEnd", func() { e.cfg.onEnd(end.Name, end.Why) })
	}
	if m := e.metrics(); m != nil {
		e.contain("Metrics.Ended", func() { m.Ended(e.cfg.name, end) })
	}
}

// levelOf returns the level at which an end is logged. Ends that the user has asked for
// are of little interest.
func levelOf(end WatchEnd) slog.Level {
	switch end.Reason() {
	case "stopped", "closed", "deadline":
		return slog.LevelDebug
	case "panicked":
		return slog.LevelError
	}
	return slog.LevelWarn
}

func (e *core) watchStalled(w *watcher.Member) {
	e.log(slog.LevelWarn, "watch stalled", "watch", w.Name(), "policy", w.Policy(), "delivered", w.Delivered())
}

// relisted is called when the cache has applied a later list, which replaces the events in
// between.
func (e *core) relisted(rev Revision, changed int) {
	e.log(slog.LevelWarn, "listed again", "revision", rev, "changed", changed)
}

// logs reports whether lines of the level are logged.
func (e *core) logs(level slog.Level) bool {
	return e.host.system.Logger().Enabled(context.Background(), level)
}

func (e *core) log(level slog.Level, what string, args ...any) {
	if e.logs(level) {
		e.host.system.Logger().Log(context.Background(), level, what, append([]any{"engine", e.cfg.name}, args...)...)
	}
}

// contain calls the user's function of that name, and logs a panic in it.
func (e *core) contain(name string, f func()) {
	if panicked := usercode.Call(name, "", f); panicked != nil {
		e.log(slog.LevelError, "user code panicked", "reason", panicked)
	}
}

// reportLeak makes the engine log an error if its handle becomes unreachable while it
// runs: nothing can close it any more then.
func reportLeak[H any](handle *H, of *liveness) {
	if of != nil {
		runtime.AddCleanup(handle, (*liveness).reportLeak, of)
	}
}

// liveness is whether an engine is open. It does not refer to the engine, whose memory
// would otherwise be held until the cleanup of its handle has run.
type liveness struct {
	closed atomic.Bool
	engine string
	logger *slog.Logger
}

// reportLeak is called when the handle is unreachable.
func (l *liveness) reportLeak() {
	if !l.closed.Load() {
		l.logger.Error("engine was never closed and is out of reach: call Close when done with it", "engine", l.engine)
	}
}

func (e *core) livenessOf() *liveness { return e.liveness }

// livenessOf returns nil if the topic has not started.
func (t *topic) livenessOf() *liveness {
	if t.engine == nil {
		return nil
	}
	return t.engine.liveness
}

// Running is a read-only view of an engine, or of a topic's engine, without its object
// type. [Host.Engines] returns it. It may be used after the engine was closed.
type Running struct{ core runningCore }

// runningCore is what Running shows of a *core. It is an interface because all
// generic code that a public type leads to is compiled with the user's package.
type runningCore interface {
	settings() *settings
	windowLimits() Window
	stats() Stats
	watches() []WatchInfo
	lastEnds() []WatchEnd
}

func (e *core) settings() *settings { return &e.cfg }

func (e *core) lastEnds() []WatchEnd { return e.ends.newest() }

// Name returns the name of the engine.
func (r Running) Name() string { return r.core.settings().name }

// Cached reports whether there is a cache; without one most of Stats is zero.
func (r Running) Cached() bool { return r.core.settings().cached() }

// Window returns the bounds of the history that watches can resume from, with the defaults
// filled in. They are zero without a cache, where the history is the backend's.
func (r Running) Window() Window { return r.core.windowLimits() }

// Stats is as [Engine.Stats].
func (r Running) Stats() Stats { return r.core.stats() }

// Watches is as [Engine.Watches].
func (r Running) Watches() []WatchInfo { return r.core.watches() }

// Ends returns the last 64 ends of watches, the newest first.
func (r Running) Ends() []WatchEnd { return r.core.lastEnds() }

// Engines returns the engines that run on the host, those of topics too, by name, and
// those of one name in the order in which they began.
func (h *Host) Engines() []Running {
	engines := coreOf(h).running()
	list := make([]Running, len(engines))
	for i, e := range engines {
		list[i] = Running{e}
	}
	return list
}

// running returns the engines that run on the host, as [Host.Engines] does.
func (h *host) running() []*core {
	h.mu.Lock()
	list := slices.Clone(h.engines)
	h.mu.Unlock()
	slices.SortStableFunc(list, func(a, b *core) int { return strings.Compare(a.cfg.name, b.cfg.name) })
	return list
}

// addEngine puts an engine on the host's list, unless its actors have stopped already.
func (h *host) addEngine(e *core) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-e.stopped:
	default:
		h.engines = append(h.engines, e)
	}
}

// removeEngine takes an engine whose actors have stopped off the list, and closes its
// stopped under the same lock: so it is not on the list when its Close returns.
func (h *host) removeEngine(e *core) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.engines = slices.DeleteFunc(h.engines, func(other *core) bool { return other == e })
	close(e.stopped)
}
