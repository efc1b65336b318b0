package queue

// sifted is a binary heap whose slots know where they are, so any of them can be
// moved or removed in logarithmic time.
type sifted[E any] struct {
	slots []*slot[E]
	less  func(a, b E) bool
}

type slot[E any] struct {
	value E
	at    int
}

func (h *sifted[E]) len() int { return len(h.slots) }

// least returns the slot to go first, of which there must be one.
func (h *sifted[E]) least() *slot[E] { return h.slots[0] }

// add puts value last. The caller must fix the slot.
func (h *sifted[E]) add(value E) *slot[E] {
	s := &slot[E]{value, len(h.slots)}
	h.slots = append(h.slots, s)
	return s
}

// remove takes s out.
func (h *sifted[E]) remove(s *slot[E]) {
	last := len(h.slots) - 1
	moved := h.slots[last]
	h.swap(s.at, last)
	h.slots[last] = nil
	h.slots = h.slots[:last]
	if moved != s {
		h.fix(moved)
	}
}

// fix moves s to where its value belongs.
func (h *sifted[E]) fix(s *slot[E]) {
	for s.at > 0 && h.before(s.at, (s.at-1)/2) {
		h.swap(s.at, (s.at-1)/2)
	}
	for {
		child := 2*s.at + 1
		if child+1 < len(h.slots) && h.before(child+1, child) {
			child++
		}
		if child >= len(h.slots) || !h.before(child, s.at) {
			return
		}
		h.swap(s.at, child)
	}
}

func (h *sifted[E]) before(i, j int) bool { return h.less(h.slots[i].value, h.slots[j].value) }

func (h *sifted[E]) swap(i, j int) {
	h.slots[i], h.slots[j] = h.slots[j], h.slots[i]
	h.slots[i].at, h.slots[j].at = i, j
}
