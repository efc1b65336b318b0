//go:build !unix

package bench

import "math"

// maxDescriptors returns how many files the process may have open: here there is no limit.
func maxDescriptors() uint64 { return math.MaxUint64 }
