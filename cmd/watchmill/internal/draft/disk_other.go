//go:build !windows

package draft

// systemDiskErrors is empty: the errors of a disk are those of package syscall here.
var systemDiskErrors []error
