package objectcache

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Errors of calls. Match them with errors.Is.
var (
	// ErrConfig: a configuration cannot work. The error is an
	// [*engine.ConfigError], or wraps what is wrong with the Backoff.
	ErrConfig = engine.ErrConfig
	// ErrNotFound: the source has no object with that key.
	ErrNotFound = store.ErrNotFound
	// ErrInvalidKey: the key cannot name an object. The error is a
	// [*store.KeyError].
	ErrInvalidKey = store.ErrInvalidKey
	// ErrNotSynced: the object has not arrived from the source. The error is a
	// [*NotSyncedError].
	ErrNotSynced = errors.New("not synced")
	// ErrReleased: the reference was released.
	ErrReleased = errors.New("reference was released")
	// ErrNotRegistered: the owner has not registered the key; see [Owners].
	ErrNotRegistered = errors.New("not registered")
	// ErrClosed: the cache was closed, or its host.
	ErrClosed = errors.New("object cache closed")
)

// ErrSource: the source failed. The error is a [*SourceError].
var ErrSource = errors.New("source failed")

// NotSyncedError says why a Get ended before the object had arrived, or a GetNotOlderThan
// before the revision had.
type NotSyncedError struct {
	Key string
	// Cause is why waiting ended: ctx's cause; nil if the source cannot be
	// followed any more, for the reason in Source.
	Cause error
	// Source is the source's last error in this attempt to follow it; nil if there
	// was none, or the source is being followed. The NotSyncedError matches what it
	// matches, except [ErrNotFound]: a source that does not find what it is to list
	// says nothing about the object.
	Source error
}

func (e *NotSyncedError) Error() string {
	text := fmt.Sprintf("object %q: not synced", e.Key)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	if e.Source != nil {
		text += ": the source's last error is: " + e.Source.Error()
	}
	return text
}

// Is makes errors.Is(err, ErrNotSynced) true.
func (e *NotSyncedError) Is(target error) bool { return target == ErrNotSynced }

// Unwrap returns why waiting ended, and what is wrong with the source.
func (e *NotSyncedError) Unwrap() []error {
	var errs []error
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	if e.Source != nil {
		errs = append(errs, unknownObject{e.Source})
	}
	return errs
}

// unknownObject is an error that does not mean that there is no object.
type unknownObject struct{ error }

func (e unknownObject) Is(target error) bool {
	return target != ErrNotFound && errors.Is(e.error, target)
}

func (e unknownObject) As(target any) bool { return errors.As(e.error, target) }

// SourceError is an error of the source while it was asked for one object.
type SourceError struct {
	Key string
	// Err is the error of the source, or of the call to it.
	Err error
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("object %q: source failed: %v", e.Key, e.Err)
}

// Is makes errors.Is(err, ErrSource) true.
func (e *SourceError) Is(target error) bool { return target == ErrSource }

// Unwrap returns Err.
func (e *SourceError) Unwrap() error { return e.Err }

// about returns err with the object's key.
func about(key string, err error) error { return fmt.Errorf("object %q: %w", key, err) }
