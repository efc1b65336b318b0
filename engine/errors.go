package engine

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// translate turns an error of an actor or of storage into the engine's errors. A call that
// was in progress at Close may find the engine's own storage closed.
func (e *core) translate(err error) error {
	switch {
	case errors.Is(err, watchcache.ErrStopped):
		return ErrEngineClosed
	case errors.Is(err, store.ErrClosed) && e.alive() != nil:
		return fmt.Errorf("%w: %w", ErrEngineClosed, err)
	}
	return e.attributed(err)
}

// translateStorage is [core.translate] for an error that storage itself has returned, not a function of the caller's.
// It notes whether storage is closed. Without a cache, whose Reflector would find it, nothing else does.
func (e *core) translateStorage(err error) error {
	if errors.Is(err, store.ErrClosed) && e.alive() == nil {
		e.storageEnded.Store(true)
	}
	return e.translate(err)
}

// attributed returns err, with the engine's name if it says no more than that storage is closed.
func (e *core) attributed(err error) error {
	if err == store.ErrClosed {
		return fmt.Errorf("the backend of engine %s is %w", e.cfg.name, err)
	}
	return err
}

// reportUncached reports an error after which a call is retried, unless there is a cache,
// whose Reflector reports the errors of storage.
func (e *core) reportUncached(err error) {
	if !e.cfg.cached() {
		e.report(err)
	}
}

// report logs an error and passes it to OnError, whose own panics are only logged.
func (e *core) report(err error) {
	err = e.attributed(err)
	e.log(slog.LevelWarn, "error", "error", err)
	if panicked := usercode.Call("Config.OnError", "", func() { e.cfg.onError(err) }); panicked != nil {
		e.host.system.Logger().Error("OnError failed", "reason", panicked, "error", err)
	}
}
