package actors

const (
	// keepTasks is the capacity of a task queue, in tasks of 16 bytes, that is
	// always kept.
	keepTasks = 4096
	// keepRuns is how many times in a row a larger one must run empty without
	// having needed its size before it is given back. Bursts that come again so
	// do not allocate again.
	keepRuns = 64
)

// taskQueue is an unbounded first-in, first-out ring of tasks. The zero value
// is empty. The length of buf is a power of two, or zero.
type taskQueue struct {
	buf   []Task
	head  int
	n     int
	peak  int // most tasks since it was last empty
	small int // times in a row that it ran empty with a small peak
}

func (q *taskQueue) len() int { return q.n }

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

// shrink gives back the memory of an empty queue if it has long been too large.
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
