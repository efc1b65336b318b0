package remote

import "github.com/watchmill/watchmill/store"

// position is how far a stream has read. A connection can end between the events of one
// revision, which a transaction of several keys or a lease has. So the next one begins
// before the last revision, and what it repeats is dropped:
//
//	first   a@6  b@7 ✂            it ends within revision 7
//	second  after 6: b@7  c@7     b was read before
type position struct {
	// through is the revision up to which events have been read. If keys has any, there may
	// be more at through itself, of other keys.
	through store.Revision
	// keys are those of the events that have been read at through, up to maxKeys. A bookmark says
	// that there are no more, and leaves none.
	keys []string
	// repeated are the keys that this connection is to send again.
	repeated map[string]struct{}
}

// maxKeys bounds the memory that a server can take by events of one revision. If a connection ends after
// more, the next one repeats some, and a reader that has had them lists again.
const maxKeys = 1 << 16

// after returns the revision after which a connection begins.
func (p *position) after() store.Revision {
	if len(p.keys) > 0 {
		return p.through - 1
	}
	return p.through
}

// connected notes that a connection begins.
func (p *position) connected() {
	p.repeated = make(map[string]struct{}, len(p.keys))
	for _, key := range p.keys {
		p.repeated[key] = struct{}{}
	}
}

// read notes an event, and reports whether it is new.
func (p *position) read(ev store.Event) bool {
	if ev.Revision > p.through || ev.Type == store.Bookmark && ev.Revision == p.through {
		clear(p.keys)
		p.through, p.keys, p.repeated = ev.Revision, p.keys[:0], nil
	}
	if ev.Type == store.Bookmark || ev.Revision < p.through {
		return true
	}
	if _, again := p.repeated[ev.Object.Key]; again {
		return false
	}
	if len(p.keys) < maxKeys {
		p.keys = append(p.keys, ev.Object.Key)
	}
	return true
}
