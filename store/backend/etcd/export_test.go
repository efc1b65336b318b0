package etcd

import "github.com/watchmill/watchmill/store"

// Floor is how far b knows that history was given up by Compact.
func (b *Backend) Floor() store.Revision { return store.Revision(b.floor.Load()) }
