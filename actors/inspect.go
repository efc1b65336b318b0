package actors

import (
	"cmp"
	"slices"

	"github.com/watchmill/watchmill/usercode"
)

// MailboxInfo says of one actor with a queue how much waits in it.
type MailboxInfo struct {
	// Name is the actor's.
	Name string
	// Queued is how many messages wait, Capacity at how many Offer returns Full.
	Queued, Capacity int
	// Running: it is in a turn.
	Running bool
	// Wakers is how many wake actors are its children.
	Wakers int
}

// Mailboxes returns the actors that have queues, by name, and those of one name in the
// order in which they were spawned. It locks each queue for a moment.
func (s *System) Mailboxes() []MailboxInfo {
	s.mu.Lock()
	cells := make([]*cell, 0, len(s.named))
	for c := range s.named {
		cells = append(cells, c)
	}
	s.mu.Unlock()
	slices.SortFunc(cells, func(a, b *cell) int {
		return cmp.Or(cmp.Compare(a.name(), b.name()), cmp.Compare(a.id, b.id))
	})
	infos := make([]MailboxInfo, len(cells))
	for i, c := range cells {
		inbox := c.body.(*queueBody).inbox
		infos[i] = MailboxInfo{
			Name: c.name(), Queued: inbox.len(), Capacity: inbox.capacity, Running: c.is(running), Wakers: int(c.spec.wakers.Load()),
		}
	}
	return infos
}

// title is the actor's name, with what its user calls it if that is known: what a
// [Waker] with a method Name returns. If that panics, the name is all.
func (c *cell) title() string {
	title := c.name()
	if box, ok := c.body.(*wakeBody); ok {
		if named, ok := box.waker.(interface{ Name() string }); ok {
			_ = usercode.Call("Waker.Name", "", func() { title += " (" + named.Name() + ")" })
		}
	}
	return title
}
