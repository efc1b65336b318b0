package server

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// The bounds of the log: the most lines of one level in a time. Lines that a client or a disk
// causes, such as those of failed handshakes or stalled watches, would fill the disk
// otherwise.
const (
	mostLines  = 60
	linesPause = time.Minute
)

// newLog returns the log of the command.
func newLog(to io.Writer) *slog.Logger {
	return slog.New(&boundedHandler{Handler: slog.NewTextHandler(to, nil), bounds: &bounds{levels: map[slog.Level]*bound{}}})
}

// bounds count the lines of each level.
type bounds struct {
	mu     sync.Mutex
	levels map[slog.Level]*bound
}

// bound counts the lines of one level since a time.
type bound struct {
	since      time.Time
	lines, cut int
}

// admit reports whether a line of a level is written now, and how many were not before it.
func (b *bounds) admit(level slog.Level, now time.Time) (cut int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.levels[level]
	if of == nil {
		of = &bound{since: now}
		b.levels[level] = of
	}
	if now.Sub(of.since) >= linesPause {
		cut = of.cut
		*of = bound{since: now}
	}
	if of.lines >= mostLines {
		of.cut++
		return 0, false
	}
	of.lines++
	return cut, true
}

// boundedHandler leaves lines out when there are too many of one level, and says how many.
type boundedHandler struct {
	slog.Handler
	bounds *bounds
}

func (h *boundedHandler) Handle(ctx context.Context, line slog.Record) error {
	cut, ok := h.bounds.admit(line.Level, line.Time)
	if !ok {
		return nil
	}
	if cut > 0 {
		line = line.Clone()
		line.AddAttrs(slog.Int("lines_left_out_before", cut))
	}
	return h.Handler.Handle(ctx, line)
}

func (h *boundedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &boundedHandler{h.Handler.WithAttrs(attrs), h.bounds}
}

func (h *boundedHandler) WithGroup(name string) slog.Handler {
	return &boundedHandler{h.Handler.WithGroup(name), h.bounds}
}
