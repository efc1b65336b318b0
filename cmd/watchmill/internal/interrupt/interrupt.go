// Package interrupt lets a command that reads a file hear of an interrupt meanwhile: a pipe
// may have nothing to read for hours, or no writer.
package interrupt

import "context"

// Do returns what read does, or the error of ctx if that is done before. Then read goes on in
// a goroutine until the file lets it end.
func Do[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case r := <-done:
		return r.value, r.err
	}
}
