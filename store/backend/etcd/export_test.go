package etcd

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Floor is how far b knows that history was given up by Compact.
func (b *Backend) Floor() store.Revision { return store.Revision(b.floor.Load()) }

// Watching returns how many watches b has.
func (b *Backend) Watching() int { return len(b.watching()) }

// ClientIsClosed reports whether the client of b is closed.
func (b *Backend) ClientIsClosed() bool { return b.client.Ctx().Err() != nil }

// OpenStream opens a stream as a watch does once it knows where to begin, and closes it.
func (b *Backend) OpenStream(ctx context.Context) error {
	w := b.newWatcher(backend.WatchOptions{Notify: func() {}})
	defer w.stop()
	s, err := w.open(ctx)
	if err == nil {
		s.close()
	}
	return err
}
