package queue

import (
	"errors"

	"github.com/watchmill/watchmill/usercode"
)

// Errors of the queues, for [errors.Is]. Failures of the user's functions are a
// [*store.KeyFuncError], a [*store.TransformError] or a [*usercode.PanicError].
var (
	// ErrClosed: the queue was closed. Pop returns it once the queue is empty, calls
	// that add at once.
	ErrClosed = errors.New("queue closed")
	// ErrShutDown: the work queue was shut down. Get returns it once nothing is left
	// to do, calls that add at once.
	ErrShutDown = errors.New("work queue shut down")
	// ErrConfig: a configuration is invalid. The error is a [*ConfigError].
	ErrConfig = usercode.ErrConfig
	// ErrNoClock: a work queue without a clock cannot delay.
	ErrNoClock = errors.New("work queue has no clock: set WorkQueueConfig.Clock")
	// ErrNoLimiter: a work queue without a limiter cannot limit.
	ErrNoLimiter = errors.New("work queue has no rate limiter: set WorkQueueConfig.Limiter")
	// ErrNotFound: the heap has no item with that key.
	ErrNotFound = errors.New("no such item")
)

// ConfigError says which field of a configuration is wrong.
type ConfigError = usercode.ConfigError
