package queue

import (
	"errors"

	"github.com/watchmill/watchmill/usercode"
)

// What the queues return. Match them with [errors.Is]. Failures of the user's
// functions come as [*store.KeyFuncError], [*store.TransformError] and
// [*usercode.PanicError].
var (
	// ErrClosed: the queue was closed. Pop returns it once the queue is empty;
	// everything that adds returns it at once.
	ErrClosed = errors.New("queue closed")
	// ErrShutDown: the work queue was shut down. Get returns it once nothing is
	// left to do; everything that adds returns it at once.
	ErrShutDown = errors.New("work queue shut down")
	// ErrConfig: a configuration cannot work. The error is a [*ConfigError].
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
