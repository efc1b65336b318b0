package etcd

import "github.com/watchmill/watchmill/store"

// Floor is how far b knows that history was given up by Compact.
func (b *Backend) Floor() store.Revision { return store.Revision(b.floor.Load()) }

// Watching returns how many watches b has.
func (b *Backend) Watching() int { return len(b.watching()) }

// ClientIsClosed reports whether the client of b is closed.
func (b *Backend) ClientIsClosed() bool { return b.client.Ctx().Err() != nil }
