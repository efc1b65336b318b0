package server

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// The bounds of the log. In a time it has at most this many lines of one level, and besides the first
// line of each beginning, of which there may be so many: what a client or a disk causes without end,
// such as lines of failed handshakes or lost lines of the audit log, would fill the disk otherwise, or
// hide another failure.
const (
	mostLines      = 60
	mostBeginnings = 30
	linesPause     = time.Minute
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
	beginnings map[string]bool // of the lines that were written
}

// admit reports whether a line is written now, and how many of its level were not before it.
func (b *bounds) admit(level slog.Level, message string, now time.Time) (cut int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.levels[level]
	if of == nil || now.Sub(of.since) >= linesPause {
		if of != nil {
			cut = of.cut
		}
		of = &bound{since: now, beginnings: map[string]bool{}}
		b.levels[level] = of
	}
	begins := beginning(message)
	if of.lines >= mostLines && (of.beginnings[begins] || of.lines >= mostLines+mostBeginnings) {
		of.cut++
		return 0, false
	}
	of.lines++
	of.beginnings[begins] = true
	return cut, true
}

// beginning returns what a message has in common with others of its cause. The messages of net/http have
// addresses and times.
func beginning(message string) string {
	if i := strings.IndexAny(message, "[0123456789"); i >= 0 {
		return message[:i]
	}
	return message
}

// boundedHandler leaves lines out when there are too many of one level, and says how many.
type boundedHandler struct {
	slog.Handler
	bounds *bounds
}

func (h *boundedHandler) Handle(ctx context.Context, line slog.Record) error {
	cut, ok := h.bounds.admit(line.Level, line.Message, line.Time)
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
