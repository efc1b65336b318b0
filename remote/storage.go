package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
)

// StoreID returns the identity of the server's storage, which the server tells in
// [registry.StorageHeader]: that of the origin, also through other replicas. It changes
// when the origin is restored from a copy, or its storage is replaced, even if the
// revision stays the same. It costs a list of one object.
//
// Errors: [store.ErrUnsupported] if the server does not tell it, as the Kubernetes API
// server: then only a lower revision shows that storage was restored. After an answer
// without the header this error costs no request.
func (b *Backend) StoreID(ctx context.Context) (string, error) {
	if err := b.open(); err != nil {
		return "", err
	}
	last := b.storage.Load()
	if last == nil || *last != "" {
		_, id, err := b.newest(ctx)
		if err != nil {
			return "", err
		}
		last = &id
	}
	if *last == "" {
		return "", fmt.Errorf("%w: the server at %s does not tell which storage it has", store.ErrUnsupported, b.config.URL)
	}
	return *last, nil
}

// storageOf returns the identity in the header of a list or a watch, "" if there is none,
// and keeps it for StoreID.
func (b *Backend) storageOf(h http.Header) string {
	id, err := url.PathUnescape(h.Get(registry.StorageHeader))
	if err != nil {
		id = "" // it was not written by a server of this module
	}
	b.storage.Store(&id)
	return id
}

// StorageError reports that the server's storage is no longer the one at which the watch
// began, so that revisions of the two cannot be compared. It matches [store.ErrExpired]:
// list again.
type StorageError struct {
	// Before and Now identify the storages.
	Before, Now string
}

func (e *StorageError) Error() string {
	return fmt.Sprintf("the server has the storage %s, and had %s when the watch began: it was restored or replaced", e.Now, e.Before)
}

// Is makes errors.Is true for [store.ErrExpired].
func (e *StorageError) Is(target error) bool { return target == store.ErrExpired }

// sameStorage returns a [*StorageError] if id identifies another storage than the answers
// before. An unknown identity counts as the same.
func (s *stream) sameStorage(id string) error {
	switch {
	case id == "" || id == s.storage:
	case s.storage == "":
		s.storage = id
	default:
		return &StorageError{Before: s.storage, Now: id}
	}
	return nil
}
