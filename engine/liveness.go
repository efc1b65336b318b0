package engine

import (
	"log/slog"
	"runtime"
	"sync/atomic"
)

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
