package watchcache

import "github.com/watchmill/watchmill/store"

// compact answers when the snapshot without the history is published.
func (c *cache) compact(m Compact) {
	c.handle.compacted = max(c.handle.compacted, m.Revision)
	c.dropCompacted()
	c.publish()
	m.Reply <- nil
}

// dropCompacted raises the window's floor to the compacted revision, or to the newest
// revision while the cache has not reached that.
func (c *cache) dropCompacted() {
	if !c.filled || c.window.View().Floor() >= min(c.handle.compacted, c.revision) {
		return
	}
	c.state.newest(c.window.View()) // needs the events that Compact may drop
	c.Stats.Trimmed.Add(uint64(c.window.Compact(c.handle.compacted)))
	c.dirty = true
}

// uncompact forgets the compaction if the list at rev is of another storage, or shows
// that storage has gone back in time: the compacted revision was one of another history.
// A list before that revision does not show it, since it may have been read before the
// compaction.
func (c *cache) uncompact(rev store.Revision, other bool) {
	if other || c.filled && rev < c.revision {
		c.handle.compacted = 0
	}
}
