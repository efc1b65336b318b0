package engine

import (
	"context"
	"log/slog"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// observed passes the dispatcher's observations to the engine's observers.
func (e *core) observed(cfg dispatcher.Config) dispatcher.Config {
	cfg.OnEnd, cfg.OnStall = e.watchEnded, e.watchStalled
	if m := e.metrics(); m != nil {
		cfg.OnRound = func(prev, next *window.Snapshot) { e.measureRound(m, prev, next) }
		cfg.Feed.Delivered = func(events []store.Event) { e.measure(m, StageDelivered, events, e.clockNow) }
	}
	return cfg
}

// watchEnded is called for each watch that has left the dispatcher.
func (e *core) watchEnded(w *watcher.Member) {
	end := WatchEnd{Name: w.Name(), Err: w.Err(), Delivered: w.Delivered()}
	e.contain("Clock.Now", func() { end.At = e.clockNow() }) // the clock may be the user's
	e.ends.add(end)
	if level := levelOf(end); e.logs(level) { // the values below take memory
		e.log(level, "watch ended", "watch", end.Name, "why", end.Err, "delivered", end.Delivered)
	}
	if e.cfg.onEnd != nil {
		e.contain("Config.OnEnd", func() { e.cfg.onEnd(end) })
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
