package objectcache

// Stats says where a cache stands.
type Stats struct {
	// References is how many have not been released. Keys is how many keys the
	// cache holds: those with references, and those whose Reflector is stopping
	// because they have none any more. Both are 0 once the cache is closed.
	References, Keys int
	// Synced is how many keys can be read at once, Frozen how many of these are
	// immutable objects that nothing follows any more.
	Synced, Frozen int
	// Idle is how many keys are referenced but not followed until the next Get.
	Idle int
	// Reflectors is how many there are, including those that are stopping: never
	// two for one key.
	Reflectors int
	// Starts is how many Reflectors have been started.
	Starts uint64
}

func (c *cache) stats() Stats {
	s := Stats{Reflectors: int(c.reflectors.Load()), Starts: c.starts.Load()}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		s.add(e.count())
	}
	return s
}

// count returns the number of references and the phase.
func (e *entry) count() (refs int, p phase) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refs, e.view.Load().phase
}

func (s *Stats) add(refs int, p phase) {
	s.Keys++
	if refs == 0 {
		return // about to be forgotten
	}
	s.References += refs
	switch p {
	case frozen:
		s.Frozen++
		s.Synced++
	case live:
		s.Synced++
	case stopped, lost:
		s.Idle++
	}
}
