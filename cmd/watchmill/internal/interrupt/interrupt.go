// Package interrupt lets a command that reads a file notice an interrupt meanwhile: a pipe
// may have nothing to read for hours, or no writer. [Alone] tells its error from others.
package interrupt

import (
	"context"
	"errors"
	"strings"
)

// Alone reports whether an error is that of an interrupt and of nothing else: one that is joined with
// another has a line for each.
func Alone(err error) bool {
	return errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "\n")
}

// Do returns what read does, or the error of ctx if that is done before. Then read goes on in
// a goroutine until the file lets it end.
func Do[T any](ctx context.Context, read func() (T, error)) (T, error) {
	return DoOrUndo(ctx, read, func(T) {})
}

// DoOrUndo is [Do] of something that has to be undone if ctx is done before: then undo is
// called with it, unless it has failed.
func DoOrUndo[T any](ctx context.Context, do func() (T, error), undo func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	go func() {
		value, err := do()
		select {
		case done <- result{value, err}:
		case <-ctx.Done():
			if err == nil {
				undo(value)
			}
		}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case r := <-done:
		return r.value, r.err
	}
}
