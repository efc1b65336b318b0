package store

import "slices"

// Rewind makes the window what it was when v was taken, for a writer that
// failed since and may have left it half changed. What it wrote behind v is
// forgotten; views that others hold stay right.
func (w *Window) Rewind(v WindowView) {
	w.chunks, w.gaps = slices.Clone(v.chunks), slices.Clone(v.gaps)
	w.first, w.next = v.first, v.next
	w.floor, w.revision = v.floor, v.revision
	w.bytes, w.rebuilt = v.bytes, new(rebuiltStates)
	if len(w.chunks) == 0 {
		return
	}
	// The last chunk may have slots filled behind v: a copy has not.
	last := len(w.chunks) - 1
	tail := *w.chunks[last]
	tail.events = make([]Event, len(tail.events))
	tail.used = copy(tail.events, v.filled(last))
	tail.bytes = v.bytes
	for _, c := range w.chunks[:last] {
		tail.bytes -= c.bytes
	}
	w.chunks[last] = &tail
}
