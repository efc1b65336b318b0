package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

// record is a watch of the world and what is known of it.
type record struct {
	judge.Record[thing]
	want  want
	watch *engine.Watch[thing]
	// handled watches get their events by themselves.
	handled bool
	// asked is when it was asked for, relists how often the engine had listed
	// anew by then.
	asked   time.Time
	relists uint64
	// reached is where the engine was then.
	reached engine.Revision
}

func newRecord(want want) *record {
	return &record{Record: judge.Record[thing]{Selects: want.match, Options: want.opts}, want: want}
}

// claim notes what Watch.Revision said.
func (r *record) claim(rev engine.Revision) {
	r.Claims = append(r.Claims, judge.Claim{Events: len(r.Events), Revision: rev})
}

// ended notes why the watch says it ended, nil if it has not, and at the first
// time whether there is cause for it.
func (w *world) ended(r *record, err error) {
	if err == nil {
		return
	}
	s := w.engine.Stats()
	waited := r.reached < max(r.Options.From, r.Earliest) && r.reached < s.WindowFloor // for its start
	if len(r.Ends) == 0 && (r.LeftBehind(s.WindowFloor) || waited || s.Relists > r.relists) {
		r.Causes = append(r.Causes, engine.ErrExpired)
	}
	if t := r.Options.Timeout; len(r.Ends) == 0 && t > 0 && !w.clock.Now().Before(r.asked.Add(t)) {
		r.Causes = append(r.Causes, engine.ErrDeadline)
	}
	r.Ends = append(r.Ends, err)
}

// ends returns why each watch ended, nil for those that live.
func (w *world) ends() (ends []error) {
	for _, r := range w.records {
		ends = append(ends, r.End())
	}
	return ends
}

func drawWant(t *rapid.T) want { return wants[rapid.IntRange(0, len(wants)-1).Draw(t, "want")] }

// drawRecord draws what a watch asks for, but for where it starts.
func (w *world) drawRecord(t *rapid.T) *record {
	r := newRecord(drawWant(t))
	r.handled = rapid.Bool().Draw(t, "handled")
	r.Options.Policy = rapid.SampledFrom([]engine.Policy{engine.Park, engine.Terminate, engine.Conflate}).Draw(t, "policy")
	r.Options.Buffer = rapid.SampledFrom([]int{0, 1, 3, 10}).Draw(t, "buffer")
	r.Options.Bookmarks = rapid.Bool().Draw(t, "bookmarks")
	r.Options.Linearizable = rapid.Bool().Draw(t, "latest")
	if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
		r.Options.Timeout = rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second}).Draw(t, "timeout")
	}
	return r
}

func (w *world) watch(t *rapid.T) {
	r := w.drawRecord(t)
	r.Options.InitialState = rapid.Bool().Draw(t, "state")
	if rapid.Bool().Draw(t, "from") {
		r.Options.From = engine.Revision(rapid.IntRange(1, int(w.newest())+3).Draw(t, "revision"))
	}
	if r.handled && !r.Options.InitialState && r.Options.From == 0 {
		// Nobody could say later when "now" was, unless nothing happens meanwhile.
		if w.executor.Run(); w.engine.Revision() != w.newest() {
			r.Options.From = w.newest()
		}
	}
	w.start(t, r)
}

// last starts a watch with the newest events. Which these are is known only
// while nothing is under way and the engine has seen each of them happen.
func (w *world) last(t *rapid.T) {
	r := w.drawRecord(t)
	r.Options.Last = rapid.SampledFrom([]int{1, 2, 7, 100}).Draw(t, "last")
	w.executor.Run()
	s := w.engine.Stats()
	first := w.newest() - engine.Revision(min(r.Options.Last, s.WindowEvents))
	for rev := first + 1; rev <= w.newest(); rev++ {
		if !w.history.Witnessed(rev) {
			return
		}
	}
	if s.Ready && s.Revision == w.newest() {
		w.start(t, r)
		r.Earliest, r.Latest = first, first
	}
}

// start starts the watch that r describes, if the engine lets it.
func (w *world) start(t *rapid.T, r *record) {
	r.Name = fmt.Sprintf("w%d", len(w.records))
	fromNow := !r.handled && !r.Options.InitialState && r.Options.From == 0 && r.Options.Last == 0
	r.Earliest = w.engine.Revision()
	if r.Options.Linearizable {
		r.Earliest = max(r.Earliest, w.newest())
	}
	if r.Options.InitialState {
		r.Earliest = max(r.Earliest, r.Options.From)
	}
	r.asked, r.relists, r.reached = w.clock.Now(), w.engine.Stats().Relists, w.engine.Revision()
	var err error
	if r.handled {
		r.watch, err = w.engine.Handle(context.Background(), r.Options, func(ev engine.Event[thing]) { r.Events = append(r.Events, ev) })
	} else {
		r.watch, err = w.engine.Watch(context.Background(), r.Options)
	}
	if r.Latest = w.newest(); err != nil {
		w.refused(t, r, err)
		return
	}
	if fromNow && r.Earliest <= r.Latest {
		now := r.watch.Revision()
		require.GreaterOrEqual(t, now, r.Earliest, "where a watch from now starts")
		r.Earliest, r.Latest = now, now
	}
	w.records = append(w.records, r)
}

// refused: a watch may be refused only for what is wrong at the time.
func (w *world) refused(t *rapid.T, r *record, err error) {
	switch {
	case r.Options.Last > 0:
		t.Fatalf("the newest events, of a cache that is ready: %v", err)
	case errors.Is(err, engine.ErrExpired):
		floor := w.engine.Stats().WindowFloor
		require.True(t, r.Options.From < floor || !w.history.Witnessed(r.Options.From), "%v, but the window starts at %d", err, floor)
	case errors.Is(err, engine.ErrNotReady), errors.Is(err, engine.ErrFuture), errors.Is(err, engine.ErrIdle):
		require.True(t, w.executor.Pending() == 0 || !errors.Is(err, engine.ErrIdle), "idle with turns left")
	default:
		t.Fatalf("watch %+v: %v", r.Options, err)
	}
}

// some draws one of the watches, nil if there is none.
func (w *world) some(t *rapid.T) *record {
	if len(w.records) == 0 {
		return nil
	}
	return w.records[rapid.IntRange(0, len(w.records)-1).Draw(t, "watch")]
}

func (w *world) read(t *rapid.T) {
	if r := w.some(t); r != nil {
		w.take(r, rapid.IntRange(1, 12).Draw(t, "events"))
	}
}

// take reads at most n events and notes what became of it.
func (w *world) take(r *record, n int) {
	if r.handled {
		w.ended(r, r.watch.Err())
		return
	}
	for ev, err := range r.watch.Events() {
		if errors.Is(err, engine.ErrIdle) {
			break
		}
		if err != nil {
			w.ended(r, err)
			break
		}
		if r.Events = append(r.Events, ev); len(r.Events)%3 == 0 {
			r.claim(r.watch.Revision())
		}
		if n--; n == 0 {
			break
		}
	}
	r.claim(r.watch.Revision())
}

// resume starts a watch where another one's consumer stands, which may go on.
func (w *world) resume(t *rapid.T) {
	r := w.some(t)
	if r == nil || r.handled {
		return
	}
	from := r.watch.Revision()
	r.claim(from)
	next := newRecord(r.want)
	next.Options = r.Options
	next.Options.From, next.Options.InitialState, next.Options.Last = from, from == 0, 0
	w.start(t, next)
}

func (w *world) stop(t *rapid.T) {
	r := w.some(t)
	if r == nil {
		return
	}
	if r.watch.Err() == nil {
		r.Causes = append(r.Causes, engine.ErrStopped)
	}
	r.watch.Stop()
}
