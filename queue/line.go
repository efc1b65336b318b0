package queue

// line is a queue in a slice that is reused. It keeps no reference to what has
// left it, and gives back the memory of a burst once it is empty again.
type line[E any] struct {
	slots []E
	head  int // slots before it have left
}

// keptSlots is how large an empty line may stay.
const keptSlots = 1024

func (l *line[E]) len() int { return len(l.slots) - l.head }

// waiting returns what is in the line, for reading, until the next push.
func (l *line[E]) waiting() []E { return l.slots[l.head:] }

func (l *line[E]) push(e E) {
	if len(l.slots) == cap(l.slots) && l.head > len(l.slots)/2 {
		n := copy(l.slots, l.slots[l.head:])
		clear(l.slots[n:])
		l.slots, l.head = l.slots[:n], 0
	}
	l.slots = append(l.slots, e)
}

// drop removes the first n.
func (l *line[E]) drop(n int) {
	clear(l.slots[l.head : l.head+n])
	l.head += n
	if l.head < len(l.slots) {
		return
	}
	l.slots, l.head = l.slots[:0], 0
	if cap(l.slots) > keptSlots {
		l.slots = nil
	}
}

func (l *line[E]) pop() E {
	e := l.slots[l.head]
	l.drop(1)
	return e
}
