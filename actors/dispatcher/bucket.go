package dispatcher

// bucket holds the groups filed under one thing in the interest index, in the
// order in which they were added. A removed group leaves a hole; when half of
// the slots are holes the bucket closes up. So adding and removing cost O(1)
// amortised, and the order never has to be restored.
type bucket struct {
	slots []*place
	live  int
	// seen is the number of the event that visited the bucket last.
	seen uint64
	// emptied takes the bucket out of its table when the last group has left.
	emptied func()
}

// place is where a group is filed.
type place struct {
	// group is the group's number in the index; noGroup once it was removed.
	group int
	// order is the number of the add that made the place.
	order uint64
	// in is nil for groups that no event can concern.
	in *bucket
	at int
}

const noGroup = -1

func (b *bucket) add(p *place) {
	p.in, p.at = b, len(b.slots)
	b.slots = append(b.slots, p)
	b.live++
}

func (b *bucket) remove(p *place) {
	b.slots[p.at], p.in = nil, nil
	b.live--
	switch {
	case b.live == 0:
		b.slots = nil
		b.emptied()
	case b.live <= len(b.slots)/2:
		b.closeUp()
	}
}

func (b *bucket) closeUp() {
	slots := make([]*place, 0, b.live)
	for _, p := range b.slots {
		if p != nil {
			p.at = len(slots)
			slots = append(slots, p)
		}
	}
	b.slots = slots
}

// appendTo appends the bucket's places to dst.
func (b *bucket) appendTo(dst []*place) []*place {
	for _, p := range b.slots {
		if p != nil {
			dst = append(dst, p)
		}
	}
	return dst
}
