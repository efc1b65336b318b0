//go:build !unix

package transport

// Descriptors returns how many files and connections the process may have open, zero if that is
// not known.
func Descriptors() uint64 { return 0 }
