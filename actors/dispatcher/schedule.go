package dispatcher

import (
	"container/heap"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
)

// tickPeriod is the time between two looks at the bookmark wheel, and
// tickJitter the largest fraction by which one is late, so that many engines do
// not tick together.
const (
	tickPeriod = time.Second
	tickJitter = 0.25
)

// bookmarks gives watches their bookmarks, on a tick that runs only while
// somebody wants them.
type bookmarks[T any] struct {
	d     *dispatcher[T]
	wheel *wheel[*watcher.Watch[T]]
	timer actors.Timer
}

func newBookmarks[T any](d *dispatcher[T]) *bookmarks[T] {
	return &bookmarks[T]{d: d, wheel: newWheel[*watcher.Watch[T]](d.BookmarkPeriod)}
}

func (b *bookmarks[T]) add(ctx *actors.Context, w *watcher.Watch[T]) {
	b.schedule(w, ctx.Clock().Now())
	b.arm(ctx)
}

func (b *bookmarks[T]) schedule(w *watcher.Watch[T], now time.Time) {
	b.wheel.schedule(w, now, w.Options().Deadline, w.OwesInitialEnd())
}

func (b *bookmarks[T]) remove(w *watcher.Watch[T]) { b.wheel.remove(w) }

// tick asks those that are due for a bookmark, and sets their next.
func (b *bookmarks[T]) tick(ctx *actors.Context) {
	b.timer = nil
	now := ctx.Clock().Now()
	for _, w := range b.wheel.due(now) {
		w.RequestBookmark()
		b.d.Stats.Bookmarks.Add(1)
		if w.Armed() {
			b.d.wake(w)
		}
		b.schedule(w, now)
	}
	b.arm(ctx)
}

func (b *bookmarks[T]) arm(ctx *actors.Context) {
	if b.timer != nil || b.wheel.len() == 0 {
		return
	}
	late := time.Duration(b.d.Rand.Float64() * tickJitter * float64(tickPeriod))
	b.timer = ctx.Clock().AfterFunc(tickPeriod+late, func() { b.d.self.Tell(Tick[T]{}) })
}

func (b *bookmarks[T]) stop() {
	if b != nil && b.timer != nil {
		b.timer.Stop()
	}
}

// deadlines ends watches whose time is up, with one timer for the earliest.
type deadlines[T any] struct {
	queue deadlineQueue[T]
	timer actors.Timer
}

func (q *deadlines[T]) add(ctx *actors.Context, d *dispatcher[T], w *watcher.Watch[T]) {
	heap.Push(&q.queue, w)
	if q.queue[0] == w {
		q.arm(ctx, d)
	}
}

func (q *deadlines[T]) remove(w *watcher.Watch[T]) {
	for i, other := range q.queue {
		if other == w {
			heap.Remove(&q.queue, i)
			return
		}
	}
}

func (q *deadlines[T]) arm(ctx *actors.Context, d *dispatcher[T]) {
	q.stop()
	if len(q.queue) == 0 {
		return
	}
	clock := ctx.Clock()
	q.timer = clock.AfterFunc(q.queue[0].Options().Deadline.Sub(clock.Now()), func() { d.self.Tell(DeadlineDue[T]{}) })
}

func (q *deadlines[T]) stop() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// deadlineDue ends the watches whose time is up.
func (d *dispatcher[T]) deadlineDue(ctx *actors.Context) {
	now := ctx.Clock().Now()
	for q := &d.deadlines.queue; len(*q) > 0 && !(*q)[0].Options().Deadline.After(now); {
		heap.Pop(q).(*watcher.Watch[T]).Finish(watcher.ErrDeadline)
	}
	d.deadlines.arm(ctx, d)
}

// deadlineQueue is a heap of watches by deadline.
type deadlineQueue[T any] []*watcher.Watch[T]

func (q deadlineQueue[T]) Len() int { return len(q) }
func (q deadlineQueue[T]) Less(i, j int) bool {
	return q[i].Options().Deadline.Before(q[j].Options().Deadline)
}
func (q deadlineQueue[T]) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *deadlineQueue[T]) Push(w any)   { *q = append(*q, w.(*watcher.Watch[T])) }
func (q *deadlineQueue[T]) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return w
}
