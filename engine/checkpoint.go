package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/watchmill/watchmill/store/backend"
)

// ErrForeignCheckpoint: a checkpoint is of another storage. The error is a
// [*CheckpointError].
var ErrForeignCheckpoint = errors.New("checkpoint of another storage")

// Checkpoint is a resume point that can be saved: a revision, and the identity of its
// storage. A consumer that saves one after each handled event can resume in another
// process, and gets an error if the storage is a different one. The zero value is not a
// checkpoint: a watch from it starts now. Save one of [Watch.Revision] as soon as that watch
// is open, or a restart before its first event misses what is written meanwhile.
//
//	checkpoint, err := pods.Checkpoint(ctx, watch.Revision())    after each handled event, to save it
//	from, err := pods.RevisionOf(ctx, checkpoint)                after the restart, for WatchOptions.From
type Checkpoint struct {
	// Store identifies the storage; see [backend.StoreID].
	Store string
	// Revision is the last one that the consumer has handled.
	Revision Revision
}

// Checkpoint returns the resume point after rev, such as [Watch.Revision] or that of
// an event. It does not check that the revision exists. The storage is the one whose
// state the cache has, which does not block. Until the cache has been filled, and without
// a cache, it calls the backend, which may block.
//
// It fails once the engine is closed, even in a handler that Close waits for and that has to save
// where it is. Nor does it know whether a revision was read before storage was restored or
// replaced, and so is of the earlier storage. A consumer that may meet either takes
// [Engine.Timeline] before its watch, gives it to the watch, and makes its checkpoints from it,
// which needs no engine:
//
//	save(engine.Checkpoint{Store: timeline.Store(), Revision: watch.Revision()})
//
// Errors: [ErrUnsupported] if the storage has no identity, [ErrEngineClosed], ctx's
// error, or the backend's.
func (e *Engine[T]) Checkpoint(ctx context.Context, rev Revision) (Checkpoint, error) {
	id, err := e.core.storeID(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	return Checkpoint{Store: id, Revision: rev}, nil
}

func (e *core) storeID(ctx context.Context) (string, error) {
	if err := e.alive(); err != nil {
		return "", err
	}
	if id := e.published.Load().StoreID; id != "" {
		return id, nil
	}
	id, err := backend.StoreID(ctx, e.storage.Backend())
	return id, e.translateStorage(err)
}

// RevisionOf returns the revision of a checkpoint, for [WatchOptions].From, if it is of
// this engine's storage. It may block as Checkpoint does. If storage may be restored
// between this call and the watch, take [Engine.Timeline] before both, and give it to
// the watch.
//
// Errors: [ErrForeignCheckpoint], which is also an [ErrExpired], since the remedy is
// the same: list, and watch from the list. Otherwise as for Checkpoint.
func (e *Engine[T]) RevisionOf(ctx context.Context, c Checkpoint) (Revision, error) {
	if c == (Checkpoint{}) {
		return 0, nil
	}
	here, err := e.Checkpoint(ctx, c.Revision)
	if err != nil {
		return 0, err
	}
	if c.Store != here.Store {
		return 0, &CheckpointError{Checkpoint: c, Store: here.Store}
	}
	return c.Revision, nil
}

// CheckpointError says that a checkpoint is of another storage.
type CheckpointError struct {
	Checkpoint Checkpoint
	// Store identifies the engine's storage.
	Store string
}

func (e *CheckpointError) Error() string {
	return fmt.Sprintf("checkpoint %d@%s is not of this storage, %s: its revision means nothing here; list, and watch from the list's revision", e.Checkpoint.Revision, e.Checkpoint.Store, e.Store)
}

// Is makes errors.Is true for [ErrForeignCheckpoint] and [ErrExpired].
func (e *CheckpointError) Is(target error) bool {
	return target == ErrForeignCheckpoint || target == ErrExpired
}

// String returns the checkpoint as [ParseCheckpoint] reads it: the revision, an @, and the
// storage. It returns "" where there is nothing to resume after: without a revision, as for the zero
// value and for a watch whose initial state is incomplete, and without a storage, as for one that has
// no identity, so that another process could not know whose revision it is.
func (c Checkpoint) String() string {
	if c.Revision == 0 || c.Store == "" {
		return ""
	}
	return strconv.FormatUint(uint64(c.Revision), 10) + "@" + c.Store
}

// ParseCheckpoint parses the result of String, which may have a line feed at its end, as in a file that
// an editor has written. Its error is an [ErrConfig].
func ParseCheckpoint(text string) (Checkpoint, error) {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return Checkpoint{}, nil
	}
	number, id, _ := strings.Cut(text, "@")
	rev, err := strconv.ParseUint(number, 10, 64)
	if err != nil || rev == 0 || id == "" {
		return Checkpoint{}, &ConfigError{Field: "Checkpoint", Problem: fmt.Sprintf("is %.80q; give what Checkpoint.String wrote, such as 12@bolt:5f0c.1/pods", text)}
	}
	return Checkpoint{Store: id, Revision: Revision(rev)}, nil
}

// MarshalText is String, for JSON and other encodings.
func (c Checkpoint) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is ParseCheckpoint.
func (c *Checkpoint) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCheckpoint(string(text))
	return err
}
