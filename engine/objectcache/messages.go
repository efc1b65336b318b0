package objectcache

// message is what the keeper takes.
type message interface{ toKeeper() }

// look asks the keeper to see whether the entry has the Reflector that it needs.
// Whoever has changed what it needs sends it, through [entry.ask], so that there
// is at most one per entry on its way.
type look struct{ entry *entry }

// due says that the entry may have been idle for long enough. The clock sends
// it; alarm tells it from an alarm that was stopped too late.
type due struct {
	entry *entry
	alarm uint64
}

// hello is the keeper's first message, by which [New] learns that it is there. A
// keeper that is stopped before it begins drops it, and does nothing else.
type hello struct{}

func (look) toKeeper()  {}
func (hello) toKeeper() {}
func (due) toKeeper()   {}
