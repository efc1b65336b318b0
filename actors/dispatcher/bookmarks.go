package dispatcher

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
)

// tickPeriod is the time between two checks of the bookmark wheel, and
// tickJitter the largest fraction by which one is late, so that many engines do
// not tick together.
const (
	tickPeriod = time.Second
	tickJitter = 0.25
)

// bookmarks schedules bookmarks, on a tick that runs only while there
// are watches that want them.
type bookmarks struct {
	d     *dispatcher
	wheel *wheel[*watcher.Member]
	timer clock.Timer
}

func newBookmarks(d *dispatcher) *bookmarks {
	return &bookmarks{d: d, wheel: newWheel[*watcher.Member](d.BookmarkPeriod)}
}

func (b *bookmarks) add(ctx *actors.Context, w *watcher.Member) {
	b.schedule(w, ctx.Clock().Now())
	b.arm(ctx)
}

func (b *bookmarks) schedule(w *watcher.Member, now time.Time) {
	b.wheel.schedule(w, now, b.d.deadlines.of(w), w.OwesInitialEnd())
}

func (b *bookmarks) remove(w *watcher.Member) { b.wheel.remove(w) }

// tick requests the bookmarks that are due, and schedules the next.
func (b *bookmarks) tick(ctx *actors.Context) {
	b.timer = nil
	now := ctx.Clock().Now()
	for _, w := range b.wheel.due(now) {
		b.request(w)
		b.d.wake(w)
		b.schedule(w, now)
	}
	b.arm(ctx)
}

// request makes w deliver a bookmark. The caller wakes it.
func (b *bookmarks) request(w *watcher.Member) {
	w.RequestBookmark()
	b.d.Stats.Bookmarks.Add(1)
}

func (b *bookmarks) arm(ctx *actors.Context) {
	if b.timer != nil || b.wheel.len() == 0 {
		return
	}
	late := time.Duration(b.d.Rand.Float64() * tickJitter * float64(tickPeriod))
	b.timer = ctx.Clock().AfterFunc(tickPeriod+late, func() { b.d.self.Tell(bookmarksDue{}) })
}

func (b *bookmarks) stop() { clock.Stop(&b.timer) }
