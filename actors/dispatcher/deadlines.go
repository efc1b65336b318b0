package dispatcher

import (
	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
)

// deadlines ends watches whose time is up, with one timer for the earliest.
type deadlines[T any] struct {
	queue *btree.BTreeG[*watcher.Watch[T]]
	timer actors.Timer
}

func newDeadlines[T any]() *deadlines[T] {
	return &deadlines[T]{queue: btree.NewBTreeGOptions(earlier[T], btree.Options{NoLocks: true})}
}

// earlier orders by deadline, and those of one moment by ID.
func earlier[T any](a, b *watcher.Watch[T]) bool {
	if c := a.Options().Deadline.Compare(b.Options().Deadline); c != 0 {
		return c < 0
	}
	return a.Box().ID() < b.Box().ID()
}

func (q *deadlines[T]) add(ctx *actors.Context, d *dispatcher[T], w *watcher.Watch[T]) {
	q.queue.Set(w)
	if first, _ := q.queue.Min(); first == w {
		q.arm(ctx, d)
	}
}

// remove takes out a watch, if it is there. The timer may then be early; it
// does not run for nobody.
func (q *deadlines[T]) remove(w *watcher.Watch[T]) {
	q.queue.Delete(w)
	if q.queue.Len() == 0 {
		q.stop()
	}
}

func (q *deadlines[T]) arm(ctx *actors.Context, d *dispatcher[T]) {
	q.stop()
	first, any := q.queue.Min()
	if !any {
		return
	}
	clock := ctx.Clock()
	q.timer = clock.AfterFunc(first.Options().Deadline.Sub(clock.Now()), func() { d.self.Tell(DeadlineDue[T]{}) })
}

func (q *deadlines[T]) stop() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// deadlineDue ends the watches whose time is up.
func (d *dispatcher[T]) deadlineDue(ctx *actors.Context) {
	now, queue := ctx.Clock().Now(), d.deadlines.queue
	for first, any := queue.Min(); any && !first.Options().Deadline.After(now); first, any = queue.Min() {
		queue.PopMin()
		first.Finish(watcher.ErrDeadline)
	}
	d.deadlines.arm(ctx, d)
}
