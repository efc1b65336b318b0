package bolt

import (
	"errors"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// The types of errors, for [errors.As]. With [errors.Is] they match package backend's
// ErrFull, ErrFailed, ErrLocked, ErrReadOnly, ErrCorrupt and ErrTooLarge, and ErrFormat.
type (
	// FullError says in Path which file has no space, and in Cause why.
	FullError = journal.FullError
	// FailedError has the Path and, in Cause, the disk's error. If Uncertain, the file may
	// have the write when it is opened again, before which the system has to forget what it has
	// of it in memory: see the package's caveats.
	FailedError = journal.FailedError
	// LockedError says in Path which file is open, in Here whether by this process, and in
	// Waited how long it was waited for. See [Options].LockTimeout.
	LockedError = journal.LockedError
	// ReadOnlyError says in Path which file was opened for reading.
	ReadOnlyError = journal.ReadOnlyError
	// CorruptError says in What what is wrong with the file at Path, on which Page, -1 if
	// on no single one, and in which record: the Revision of the type Log, both zero if the
	// damage is elsewhere.
	CorruptError = journal.CorruptError
	// FormatError says in Format which format the file at Path has, zero if another program
	// made it, and in Snapshot that it is a snapshot.
	FormatError = journal.FormatError
	// UnsupportedError says on which System files cannot be used: it is none of Linux, macOS and
	// the BSDs. It matches [errors.ErrUnsupported].
	UnsupportedError = journal.UnsupportedError
	// TooLargeError says how large an object is, and how large it may be.
	TooLargeError = journal.TooLargeError
)

var (
	// ErrFormat: the file was made by a newer version, or by another program, or it is a
	// snapshot, which can be opened only for reading.
	ErrFormat = journal.ErrFormat
	// ErrTimeout: a snapshot or Close took too long.
	ErrTimeout = journal.ErrTimeout
	// ErrTypeInUse: the objects of that name are in use; close that backend first.
	ErrTypeInUse = errors.New("type is in use")
	// errLost is why a value that Salvage discarded cannot be decoded.
	errLost = errors.New("it was damaged, and Salvage has discarded it")
	// errSealed is why a sealed value cannot be decoded without a sealer.
	errSealed = errors.New("it is sealed, and Config.Sealer is nil")
)
