//go:build !unix

package directory

// Sync does nothing: directories cannot be synced here.
func Sync(string) error { return nil }
