package bolt

import (
	"errors"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// The types of errors, for [errors.As]. With [errors.Is] they match package backend's
// ErrFull, ErrFailed, ErrLocked, ErrReadOnly, ErrCorrupt and ErrTooLarge, and ErrFormat.
type (
	// FullError says which file has no space.
	FullError = journal.FullError
	// FailedError has the disk's error, and whether the outcome is unknown.
	FailedError = journal.FailedError
	// LockedError says which file is open, and whether by this process. See
	// [Options].LockTimeout.
	LockedError = journal.LockedError
	// ReadOnlyError says which file was opened for reading.
	ReadOnlyError = journal.ReadOnlyError
	// CorruptError says where a file is damaged.
	CorruptError = journal.CorruptError
	// FormatError says which format a file has, or that it is a snapshot.
	FormatError = journal.FormatError
	// TooLargeError says how large an object is, and how large it may be.
	TooLargeError = journal.TooLargeError
)

var (
	// ErrFormat: the file was made by a newer version, or by another program, or it is a
	// snapshot, which can be opened only for reading.
	ErrFormat = journal.ErrFormat
	// ErrTimeout: a snapshot or Close took too long.
	ErrTimeout = journal.ErrTimeout
	// ErrOpenType: the objects of that name are in use; close that backend first.
	ErrOpenType = errors.New("type is in use")
	// errLost is why a value that Salvage discarded cannot be decoded.
	errLost = errors.New("it was damaged, and Salvage has discarded it")
	// errSealed is why a sealed value cannot be decoded without a sealer.
	errSealed = errors.New("it is sealed, and Config.Sealer is nil")
)
