package engine

import "github.com/watchmill/watchmill/store"

// group is those who follow the same prefix. A publication is first looked
// through for the groups that it concerns, then their members are called: so it
// costs as many steps as there are events and members, not one for each pair.
type group struct {
	members []*notification
	// touched: there is something for them in what is being shown. First is the
	// position of the first such event, and last the one behind the newest.
	touched     bool
	first, last store.Seq
}

// join puts n into the group of its prefix.
func (f *followers) join(n *notification) {
	if f.under == nil {
		f.under = make(map[string]*group)
	}
	g := f.under[n.prefix]
	if g == nil {
		g = &group{}
		f.under[n.prefix] = g
	}
	n.place = len(g.members)
	g.members = append(g.members, n)
}

// part takes n out of its group.
func (f *followers) part(n *notification) {
	g := f.under[n.prefix]
	last := len(g.members) - 1
	g.members[n.place], g.members[last].place = g.members[last], n.place
	g.members[last] = nil
	g.members = g.members[:last]
	if last == 0 {
		delete(f.under, n.prefix)
	}
}

// wide returns those who follow everything.
func (f *followers) wide() []*notification {
	if g := f.under[""]; g != nil {
		return g.members
	}
	return nil
}

// look notes that a follower at position at looks. It returns from where it has
// to: nothing before that is for it. What is published from here on it is told.
func (f *followers) look(n *notification, at store.Seq) store.Seq {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.again = true
	switch {
	case n.prefix == "" || at < max(n.since, f.blind):
	case n.last > at:
		at = max(at, n.first)
	default:
		at = max(at, f.seen)
	}
	n.at = at
	return at
}

// looked notes how far a follower has got.
func (f *followers) looked(n *notification, at store.Seq, through Revision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.at, n.through = at, through
}

// show has the index see what a snapshot has beyond the one before, and call whom
// that concerns. If it cannot tell, that is everybody. After an outage it is also
// everybody, for they have heard nothing meanwhile.
func show(f *followers, snap *store.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wide := f.wide()
	if len(f.all) > len(wide) {
		f.left = len(f.all)
		f.arm() // comes first: the clock may be the user's, and panic
	}
	from, anew, back := f.seen, snap.Epoch != f.epoch, snap.Generation != f.generation
	f.seen, f.epoch, f.generation, f.reached = snap.Window.Next(), snap.Epoch, snap.Generation, snap.Revision
	blind := anew || snap.Window.First() > from
	if blind || back {
		f.callAll(f.all)
	}
	f.callAll(wide)
	switch {
	case blind:
		f.blind = f.seen
	case len(f.all) > len(wide):
		meetAll(f, snap.Window, from)
		f.callTouched()
	}
}

// meetAll touches whom the events of the window from a position on concern.
func meetAll(f *followers, window store.WindowView, from store.Seq) {
	for from < window.Next() {
		events, _ := window.Read(from)
		for i, ev := range events {
			f.meet(ev.Key(), from+store.Seq(i))
		}
		from += store.Seq(len(events))
	}
}

// meet touches those who follow key, of which there is an event at position at.
func (f *followers) meet(key string, at store.Seq) {
	for i := range len(key) {
		if key[i] == '/' {
			f.touch(key[:i], at)
			f.touch(key[:i+1], at)
		}
	}
	f.touch(key, at)
}

func (f *followers) touch(prefix string, at store.Seq) {
	g := f.under[prefix]
	if g == nil {
		return
	}
	if !g.touched {
		g.touched, g.first = true, at
		f.touched = append(f.touched, g)
	}
	g.last = at + 1
}

// callTouched calls the members of the groups that were touched. Who has already
// read the first event for the group counts it once more, which hides nothing.
func (f *followers) callTouched() {
	for _, g := range f.touched {
		g.touched = false
		for _, n := range g.members {
			if n.last <= n.at {
				n.first = g.first
			}
			n.last = g.last
			f.call(n)
		}
	}
	clear(f.touched)
	f.touched = f.touched[:0]
}
