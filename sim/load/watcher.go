package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// Why a watcher stops reading, if not since its watch ended.
var (
	// errWritten: everything is written; read what is left, and that is all.
	errWritten = errors.New("everything is written")
	// errReconnect: break off and resume.
	errReconnect = errors.New("reconnect")
	// errRead: everything has been read.
	errRead = errors.New("everything is read")
)

// watchers is a group of watchers.
type watchers struct {
	spec *scenario.Watcher
	all  []*watcher
	// latency is from due to consumer, handed from storage to consumer.
	latency, handed *latency.Recorder
}

// watcher is the client of one watch after the other. One goroutine lives its
// life; a handler runs on the engine's.
type watcher struct {
	run    *run
	group  *watchers
	number int
	sel    scenario.Selection
	rand   *rand.Rand
	pace   *pace.Consumer

	// mu is held while events are taken, so that the watch does not change meanwhile.
	mu       sync.Mutex
	trail    judge.Trail[content.Item]
	current  *engine.Watch[content.Item] // nil while there is none
	wanted   int64                       // since when it wants to watch
	scratch  [2][]int64
	nanos    int64 // sum and longest of the latencies
	measured int64
	slowest  int64
	taken    int64 // when events were taken last

	// need is the last revision that it has to see, known once everything is
	// written.
	need engine.Revision

	// What others look at meanwhile.
	watch     atomic.Pointer[engine.Watch[content.Item]]
	kick      atomic.Pointer[context.CancelCauseFunc]
	panicNext atomic.Bool
	delivered atomic.Uint64
	lag       atomic.Uint64 // the most, as sampled

	// at is where a watcher that follows stands, resumed that it has just broken
	// off, breaks are where it does in a history, and pipeline is what its events
	// go through, if that is a queue.
	at       atomic.Uint64
	resumed  bool
	breaks   breaks
	pipeline *pipeline
	ready    func()
	// lost is why it gave up.
	lost error

	reconnects, relists int
	ends                map[string]int
	lastEnd             string
	read, failed        bool
}

func (w *watcher) name() string { return fmt.Sprintf("%s-%d", w.group.spec.Name, w.number) }

func newWatcher(r *run, g *watchers, number, seat int) *watcher {
	chance := rand.New(rand.NewPCG(r.plan.Seed, uint64(seat)+10_000_000))
	w := &watcher{
		run: r, group: g, number: number, sel: r.plan.Select(*g.spec, number), rand: chance,
		pace: pace.NewConsumer(g.spec.Consume, chance.Float64()), ends: map[string]int{},
	}
	w.trail.Name = w.name()
	if g.spec.Policy == scenario.Conflate || g.spec.Consumer == scenario.Queue || r.history != nil {
		w.trail.KeepObjects()
	}
	if r.history != nil {
		w.breaks = newBreaks(r.plan.Seed, uint64(seat), r.history.Breaks)
	}
	return w
}

// starts returns when the watcher opens its first watch, after the begin.
func (w *watcher) starts() time.Duration {
	return w.group.spec.Start + w.group.spec.Spread*time.Duration(w.number)/time.Duration(w.group.spec.Count)
}

// live opens watches and reads them until everything is read, or ctx is done.
// It calls ready when the first is open.
func (w *watcher) live(ctx context.Context, ready func()) {
	ready = sync.OnceFunc(ready)
	defer ready()
	w.want()
	if follows(w.group.spec) {
		w.follow(ctx, ready)
		return
	}
	for ctx.Err() == nil {
		watch, err := w.open(ctx)
		if err != nil {
			if !w.retry(ctx, err) {
				return
			}
			continue
		}
		w.failed = false
		ready()
		reason := w.consume(ctx, watch)
		w.leave(watch)
		switch {
		case errors.Is(reason, errRead):
			w.read = true
			return
		case errors.Is(reason, errReconnect):
			w.reconnects++
			_ = pace.Sleep(ctx, w.group.spec.Reconnect.Away)
			w.want()
		case ctx.Err() == nil:
			w.reconnects++
			w.ended(reason)
		}
	}
}

// want makes now the moment since when the watcher wants to watch. It stays,
// however long it takes to open a watch, and when one ends that it did not leave:
// what the engine holds up meanwhile is late.
func (w *watcher) want() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = w.run.watch.now()
}

// retry waits a moment before the next attempt to open a watch, and reports
// whether there is to be one. That it is stopped meanwhile is no failure.
func (w *watcher) retry(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	w.failed = true
	if errors.Is(err, engine.ErrEngineClosed) {
		return false
	}
	w.run.failure(w.name(), err)
	return pace.Sleep(ctx, 10*time.Millisecond) == nil
}

// ended notes that a watch ended otherwise than by its consumer.
func (w *watcher) ended(reason error) {
	w.ends[endName(reason)]++
	w.lastEnd = reason.Error()
}

// endNames names the ends of watches.
var endNames = []struct {
	err  error
	name string
}{
	{engine.ErrExpired, "expired"}, {engine.ErrSlowConsumer, "terminated"}, {engine.ErrHandlerPanic, "panicked"},
	{engine.ErrDeadline, "deadline"}, {engine.ErrEngineClosed, "closed"},
}

func endName(reason error) string {
	for _, e := range endNames {
		if errors.Is(reason, e.err) {
			return e.name
		}
	}
	return "other"
}
