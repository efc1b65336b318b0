package usercode

import (
	"context"
	"errors"
	"log/slog"
)

// Logger returns a logger with l's handler, whose panics it contains: the line, or the
// attributes to be added, are lost, and failed is called, which must not use the logger.
// Like l, it is safe for concurrent use, if failed is.
func Logger(l *slog.Logger, failed func(*PanicError)) *slog.Logger {
	return slog.New(&containedHandler{handler: l.Handler(), failed: failed})
}

// containedHandler is a handler that does not panic.
type containedHandler struct {
	handler slog.Handler
	failed  func(*PanicError)
}

// call calls the handler's method of that name.
func (h *containedHandler) call(name string, method func()) error {
	err := Call(name, "", method)
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		h.failed(panicked)
	}
	return err
}

func (h *containedHandler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	_ = h.call("Logger.Enabled", func() { enabled = h.handler.Enabled(ctx, level) })
	return enabled
}

func (h *containedHandler) Handle(ctx context.Context, line slog.Record) (err error) {
	if panicked := h.call("Logger.Handle", func() { err = h.handler.Handle(ctx, line) }); panicked != nil {
		return panicked
	}
	return err
}

func (h *containedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with("Logger.WithAttrs", func() slog.Handler { return h.handler.WithAttrs(attrs) })
}

func (h *containedHandler) WithGroup(name string) slog.Handler {
	return h.with("Logger.WithGroup", func() slog.Handler { return h.handler.WithGroup(name) })
}

// with returns the handler that derive returns, contained, or h if derive panics.
func (h *containedHandler) with(name string, derive func() slog.Handler) slog.Handler {
	derived := &containedHandler{failed: h.failed}
	if h.call(name, func() { derived.handler = derive() }) != nil {
		return h
	}
	return derived
}
