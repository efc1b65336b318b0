package dispatcher

import (
	"github.com/tidwall/btree"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
)

// deadlines ends watches whose time is up, with one timer for the earliest.
type deadlines struct {
	queue *btree.BTreeG[*watcher.Watch]
	timer actors.Timer
}

func newDeadlines() *deadlines {
	return &deadlines{queue: btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true})}
}

// earlier orders by deadline, and those of one moment by ID.
func earlier(a, b *watcher.Watch) bool {
	if c := a.Options().Deadline.Compare(b.Options().Deadline); c != 0 {
		return c < 0
	}
	return a.Box().ID() < b.Box().ID()
}

func (q *deadlines) add(ctx *actors.Context, d *dispatcher, w *watcher.Watch) {
	q.queue.Set(w)
	if first, _ := q.queue.Min(); first == w {
		q.arm(ctx, d)
	}
}

// remove takes out a watch, if it is there. The timer may then be early; it
// does not run for nobody.
func (q *deadlines) remove(w *watcher.Watch) {
	q.queue.Delete(w)
	if q.queue.Len() == 0 {
		q.stop()
	}
}

func (q *deadlines) arm(ctx *actors.Context, d *dispatcher) {
	q.stop()
	first, any := q.queue.Min()
	if !any {
		return
	}
	clock := ctx.Clock()
	q.timer = clock.AfterFunc(first.Options().Deadline.Sub(clock.Now()), func() { d.self.Tell(DeadlineDue{}) })
}

func (q *deadlines) stop() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// deadlineDue ends the watches whose time is up.
func (d *dispatcher) deadlineDue(ctx *actors.Context) {
	now, queue := ctx.Clock().Now(), d.deadlines.queue
	for first, any := queue.Min(); any && !first.Options().Deadline.After(now); first, any = queue.Min() {
		queue.PopMin()
		first.Finish(watcher.ErrDeadline)
	}
	d.deadlines.arm(ctx, d)
}
