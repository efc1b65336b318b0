package actors

// taskGroup is the tasks of one group of actors in a pool. The pool's lock
// guards it.
type taskGroup struct {
	pool  *Pool // the pool that serves the group; fixed
	tasks taskQueue
	next  *taskGroup // in a groupRing; nil outside it
}

// groupRing is the groups of a pool in the order in which they are served. The
// zero value is empty.
//
// A group that comes in is served next, so that one with little to do does not
// wait for those with much. Once served it is at the end, and it stays in the
// ring, with tasks or without, until its turn comes again and it has none. So it
// cannot come in twice while another group waits.
type groupRing struct{ last *taskGroup }

// restart empties the ring, unless it holds g alone. No group may have tasks.
func (r *groupRing) restart(g *taskGroup) {
	if g.next == g {
		return
	}
	for r.last != nil {
		first := r.last.next
		if first == r.last {
			r.last = nil
		} else {
			r.last.next = first.next
		}
		first.next = nil
	}
}

// add puts g first in the ring, to be served next. It reports false, and changes
// nothing, if g is in the ring already.
func (r *groupRing) add(g *taskGroup) bool {
	switch {
	case g.next != nil:
		return false
	case r.last == nil:
		g.next, r.last = g, g
	default:
		g.next, r.last.next = r.last.next, g
	}
	return true
}

// addLast puts g last in the ring, unless it is in it already.
func (r *groupRing) addLast(g *taskGroup) {
	if r.add(g) {
		r.last = g
	}
}

// take returns the group whose turn it is and puts it at the end. One of the
// groups must have tasks; those before it that have none leave the ring.
func (r *groupRing) take() *taskGroup {
	g := r.last.next
	for g.tasks.n == 0 {
		r.last.next, g.next, g = g.next, nil, g.next
	}
	r.last = g
	return g
}

// shared reports whether the ring, which must not be empty, has several groups.
func (r *groupRing) shared() bool { return r.last != r.last.next }

const (
	// keepTasks is the capacity of a task queue, in tasks of 16 bytes, that is
	// always kept.
	keepTasks = 512
	// keepRuns is how many times in a row a larger queue must become empty
	// without having needed its size before its memory is freed. So regular
	// bursts do not allocate each time.
	keepRuns = 64
)

// taskQueue is an unbounded first-in, first-out ring of tasks. The zero value
// is empty. The length of buf is a power of two, or zero.
type taskQueue struct {
	buf   []Task
	head  int
	n     int
	peak  int // most tasks since it was last empty
	small int // times in a row that it became empty with a small peak
}

func (q *taskQueue) push(t Task) {
	q.reserve(1)
	q.buf[(q.head+q.n)&(len(q.buf)-1)] = t
	q.n++
}

func (q *taskQueue) pushAll(ts []Task) {
	q.reserve(len(ts))
	tail := (q.head + q.n) & (len(q.buf) - 1)
	copied := copy(q.buf[tail:], ts)
	copy(q.buf, ts[copied:])
	q.n += len(ts)
}

// pushFront puts the tasks, in their order, before all others.
func (q *taskQueue) pushFront(ts []Task) {
	q.reserve(len(ts))
	for i := len(ts) - 1; i >= 0; i-- {
		q.head = (q.head - 1) & (len(q.buf) - 1)
		q.buf[q.head] = ts[i]
	}
	q.n += len(ts)
}

// pop returns the first task of a queue that is not empty.
func (q *taskQueue) pop() Task {
	t := q.buf[q.head]
	q.buf[q.head] = nil
	q.head = (q.head + 1) & (len(q.buf) - 1)
	q.n--
	if q.n == 0 {
		q.shrink()
	}
	return t
}

// shrink frees the memory of an empty queue if it has been too large for long.
func (q *taskQueue) shrink() {
	if len(q.buf) <= keepTasks || q.peak > len(q.buf)/4 {
		q.small = 0
	} else if q.small++; q.small == keepRuns {
		*q = taskQueue{}
	}
	q.peak = 0
}

// reserve makes room for extra more tasks.
func (q *taskQueue) reserve(extra int) {
	need := q.n + extra
	q.peak = max(q.peak, need)
	if need <= len(q.buf) {
		return
	}
	size := max(64, len(q.buf))
	for size < need {
		size *= 2
	}
	grown := make([]Task, size)
	first := copy(grown, q.buf[q.head:min(q.head+q.n, len(q.buf))])
	copy(grown[first:], q.buf[:q.n-first])
	q.buf, q.head = grown, 0
}
