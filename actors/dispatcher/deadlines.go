package dispatcher

import (
	"time"

	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
)

// deadlines ends watches whose time is up, with one timer for the earliest.
type deadlines[T any] struct {
	queue *btree.BTreeG[deadline[T]]
	timer actors.Timer
}

// deadline is when a watch's time is up. The ID tells apart those of one moment.
type deadline[T any] struct {
	at    time.Time
	id    actors.ID
	watch *watcher.Watch[T]
}

func newDeadlines[T any]() *deadlines[T] {
	return &deadlines[T]{queue: btree.NewBTreeGOptions(earlier[T], btree.Options{NoLocks: true})}
}

func earlier[T any](a, b deadline[T]) bool {
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	return a.id < b.id
}

func deadlineOf[T any](w *watcher.Watch[T]) deadline[T] {
	return deadline[T]{at: w.Options().Deadline, id: w.Box().ID(), watch: w}
}

func (q *deadlines[T]) add(ctx *actors.Context, d *dispatcher[T], w *watcher.Watch[T]) {
	q.queue.Set(deadlineOf(w))
	if first, _ := q.queue.Min(); first.watch == w {
		q.arm(ctx, d)
	}
}

// remove takes out a watch, if it is there. The timer may then be early; it
// does not run for nobody.
func (q *deadlines[T]) remove(w *watcher.Watch[T]) {
	q.queue.Delete(deadlineOf(w))
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
	q.timer = clock.AfterFunc(first.at.Sub(clock.Now()), func() { d.self.Tell(DeadlineDue[T]{}) })
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
	for first, any := queue.Min(); any && !first.at.After(now); first, any = queue.Min() {
		queue.PopMin()
		first.watch.Finish(watcher.ErrDeadline)
	}
	d.deadlines.arm(ctx, d)
}
