package draft

import "golang.org/x/sys/windows"

// systemDiskErrors are what Windows calls the errors of a disk: those of package syscall are never
// returned there by a call of the system.
var systemDiskErrors = []error{
	windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED, windows.ERROR_FILE_TOO_LARGE,
	windows.ERROR_WRITE_FAULT, windows.ERROR_CRC, windows.ERROR_IO_DEVICE, windows.ERROR_DISK_OPERATION_FAILED,
}
