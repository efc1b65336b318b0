package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
)

// StoreID returns the identity of the server's storage, which the server sends in
// [registry.StorageHeader]: that of the origin, even through other replicas. It changes
// when the origin is restored from a copy, or its storage is replaced, even if the
// revision stays the same. It costs a list of one object. If the answer has no identity,
// as through a proxy that removes the header now and then, it is the one sent last.
//
// Errors: [store.ErrUnsupported] if the server has never told it, as the Kubernetes API
// server: then only a lower revision shows that storage was restored. After an answer
// without the header this error costs no request.
func (b *Backend) StoreID(ctx context.Context) (string, error) {
	if err := b.open(); err != nil {
		return "", err
	}
	last := b.storage.Load()
	if last == nil || *last != "" {
		_, id, err := b.newest.ask(ctx)
		if err != nil {
			return "", err
		}
		last = b.storage.Load()
		if id != "" {
			last = &id
		}
	}
	if *last == "" {
		return "", fmt.Errorf("%w: the server at %s does not say which storage it has", store.ErrUnsupported, b.config.URL)
	}
	return *last, nil
}

// lastStorage returns the identity that the server told last, "" if it told none.
func (b *Backend) lastStorage() string {
	if last := b.storage.Load(); last != nil {
		return *last
	}
	return ""
}

// StoreID returns the identity of the storage that the watch began at. If the answer of
// the first connection did not say, the server is asked as [Backend.StoreID] does.
func (w *watch) StoreID(ctx context.Context) (string, error) {
	if w.storage != "" {
		return w.storage, nil
	}
	return w.backend.StoreID(ctx)
}

// maxIdentity is the longest identity of storage, in bytes. It is kept with each timeline
// and checkpoint.
const maxIdentity = 1 << 10

// storageOf returns the identity in the header of a list or a watch, "" if there is none,
// and keeps it for StoreID. An unknown identity does not replace a known one.
func (b *Backend) storageOf(h http.Header) string {
	id, err := url.PathUnescape(h.Get(registry.StorageHeader))
	if err != nil || len(id) > maxIdentity || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		id = "" // it was not written by a server of this module
	}
	if id == "" {
		b.storage.CompareAndSwap(nil, &id)
	} else {
		b.storage.Store(&id)
	}
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
	return fmt.Sprintf("the server has the storage %q, and had %q when the watch began: it was restored or replaced", e.Now, e.Before)
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
