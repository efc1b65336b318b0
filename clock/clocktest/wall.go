package clocktest

import (
	"time"
	"unsafe"
)

// SetWall returns at, a time of [time.Now], as it reads after the machine's clock has been set
// forward by d, or back if d is negative: another wall clock, and the same monotonic reading.
// Package time itself cannot make such a time. It counts whole seconds.
func SetWall(at time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&at)) += uint64(d/time.Second) << 30 // after the nanoseconds
	return at
}
