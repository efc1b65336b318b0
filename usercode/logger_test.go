package usercode_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/usercode"
)

// failingHandler is a user's handler that panics in the method of that name.
type failingHandler struct {
	slog.Handler
	in string
}

func (h failingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	h.failIn("Enabled")
	return h.Handler.Enabled(ctx, level)
}

func (h failingHandler) Handle(ctx context.Context, line slog.Record) error {
	h.failIn("Handle")
	return h.Handler.Handle(ctx, line)
}

func (h failingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.failIn("WithAttrs")
	return failingHandler{h.Handler.WithAttrs(attrs), h.in}
}

func (h failingHandler) WithGroup(name string) slog.Handler {
	h.failIn("WithGroup")
	return failingHandler{h.Handler.WithGroup(name), h.in}
}

func (h failingHandler) failIn(method string) {
	if method == h.in {
		panic("disk full")
	}
}

func ExampleLogger() {
	full := slog.New(failingHandler{slog.DiscardHandler, "Enabled"})
	logger := usercode.Logger(full, func(err *usercode.PanicError) { fmt.Println(err) })
	logger.Error("backup failed")
	// Output:
	// Logger.Enabled panicked: disk full
}

func TestLogger_ContainsPanicsOfEveryMethod(t *testing.T) {
	for method, want := range map[string]string{
		"Enabled":   "",
		"Handle":    "",
		"WithAttrs": "level=INFO msg=hello g.b=2\n",
		"WithGroup": "level=INFO msg=hello a=1 b=2\n",
	} {
		t.Run(method, func(t *testing.T) {
			var out strings.Builder
			text := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})
			var failed []string
			logger := usercode.Logger(slog.New(failingHandler{text, method}), func(err *usercode.PanicError) {
				failed = append(failed, err.Error())
			})
			logger.With("a", 1).WithGroup("g").Info("hello", "b", 2)
			require.Equal(t, []string{"Logger." + method + " panicked: disk full"}, failed)
			require.Equal(t, want, out.String())
		})
	}
}

// A handler that sends each line to several others must learn that one of them has lost it.
func TestLogger_SaysThatALineIsLost(t *testing.T) {
	failing := usercode.Logger(slog.New(failingHandler{slog.DiscardHandler, "Handle"}), func(*usercode.PanicError) {})
	err := failing.Handler().Handle(t.Context(), slog.Record{})
	require.ErrorIs(t, err, usercode.ErrPanic)
}

// withoutTime leaves out the time of a line.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// It changes nothing about a handler that does not panic.
func TestLogger_HandlesAsItsHandler(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		out.Reset()
		return usercode.Logger(slog.New(slog.NewJSONHandler(&out, nil)), func(err *usercode.PanicError) { t.Error(err) }).Handler()
	}, func(t *testing.T) (line map[string]any) {
		require.NoError(t, json.Unmarshal(out.Bytes(), &line))
		return line
	})
}
