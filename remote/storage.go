package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
)

// StoreID returns the identity of the storage that the server has, as it tells it in
// [registry.StorageHeader]: that of the origin, also through other replicas. A server
// that was restored from a copy, or whose storage was replaced, has another one, even
// if it is at the same revision. It costs a request.
//
// Errors: [store.ErrUnsupported] if the server does not tell, as the Kubernetes API
// server does not: then a restored one is noticed by its revisions alone. If its last
// answer did not, none is asked for.
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

// storageOf returns the identity that the header of a list or a watch tells, "" for
// none, and remembers it.
func (b *Backend) storageOf(h http.Header) string {
	id, err := url.PathUnescape(h.Get(registry.StorageHeader))
	if err != nil {
		id = "" // it is of something that only looks like a server of ours
	}
	b.storage.Store(&id)
	return id
}

// StorageError says that the server has other storage than it had when the watch began:
// revisions of the two cannot be compared. It is a [store.ErrExpired]: list again.
type StorageError struct {
	// Before and Now identify the storages.
	Before, Now string
}

func (e *StorageError) Error() string {
	return fmt.Sprintf("the server has the storage %s, and had %s when the watch began: it was restored or replaced", e.Now, e.Before)
}

// Is makes errors.Is true for [store.ErrExpired].
func (e *StorageError) Is(target error) bool { return target == store.ErrExpired }

// sameStorage fails with a [*StorageError] if id is of another storage than what was
// read before. What is unknown is taken for the same.
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
