package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// stepping is a Seeded executor that runs one turn at a time while a call
// waits, so that the call goes on as soon as its answer is there, with the rest
// of the engine in the middle of something.
type stepping struct{ *actors.Seeded }

// Run runs one turn at most.
func (s stepping) Run() int { return s.RunN(1) }

// world is an engine on a deterministic host, a backend with moods, some
// watches, and the truth that they are held against.
type world struct {
	*truth
	t        *rapid.T
	clock    *actors.VirtualClock
	executor *actors.Seeded
	host     *engine.Host
	source   *moody
	engine   *engine.Engine[thing]
	records  []*record
	serial   int
}

func newWorld(t *rapid.T) *world {
	w := &world{
		truth: newTruth(), t: t,
		clock:    actors.NewVirtualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		executor: actors.NewSeeded(rapid.Uint64().Draw(t, "seed")),
	}
	var err error
	w.host, err = engine.NewHost(engine.HostConfig{Clock: w.clock, Executor: stepping{w.executor}, Seed: 1})
	require.NoError(t, err)
	w.source = newMoody(w.host.Clock())
	w.source.traits.Blocks = rapid.Bool().Draw(t, "blocks")
	w.source.batch = rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "batch")
	w.source.witness = func(rev engine.Revision) { w.witnessed[rev] = true }
	cfg := thingConfig()
	cfg.Host, cfg.Backend, cfg.Name = w.host, w.source, "things"
	cfg.BookmarkPeriod = 2 * time.Second
	cfg.Backoff = reflector.Backoff{Initial: 100 * time.Millisecond, Max: time.Second}
	cfg.Window.MinAge = rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "age")
	cfg.Window.MaxEvents = rapid.SampledFrom([]int{4, 16, 1000}).Draw(t, "window")
	cfg.Window.ChunkSize = rapid.SampledFrom([]int{1, 3, 4}).Draw(t, "chunk")
	if rapid.Bool().Draw(t, "indexed") {
		cfg.Index, cfg.IndexLabels = []string{"node"}, []string{"app"}
	}
	w.engine, err = engine.New(cfg)
	require.NoError(t, err)
	return w
}

// actions are what can happen, for [rapid.T.Repeat].
func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"write": w.write, "burst": w.burst, "turns": w.turns, "settle": w.settle,
		"watch": w.watch, "last": w.last, "read": w.read, "resume": w.resume, "stop": w.stop,
		"advance": w.advance, "disturb": w.disturb, "compact": w.compact,
		"get": w.get, "list": w.list, "pages": w.pages, "latest": w.latest,
	}
}

var keys = []string{"x/1", "x/2", "y/1", "y/2", "z"}

func (w *world) write(t *rapid.T) {
	w.serial++
	value := thing{
		Key:  rapid.SampledFrom(keys).Draw(t, "key"),
		App:  rapid.SampledFrom([]string{"web", "db", "lb"}).Draw(t, "app"),
		Node: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"),
		N:    w.serial,
	}
	ctx := context.Background()
	_, there := w.at(w.newest())[value.Key]
	switch verb := rapid.IntRange(0, 9).Draw(t, "verb"); {
	case verb == 0:
		rev, err := w.engine.Emit(ctx, value)
		require.NoError(t, err)
		require.Equal(t, w.add(engine.Emitted, value), rev)
	case verb < 4 && there:
		o, err := w.engine.Delete(ctx, value.Key, engine.DeleteOptions[thing]{})
		require.NoError(t, err)
		require.Equal(t, w.add(engine.Deleted, thing{Key: value.Key}), o.Revision)
	default:
		rev, err := w.engine.Put(ctx, value)
		require.NoError(t, err)
		require.Equal(t, w.add(engine.Added, value), rev)
	}
}

// burst writes more than a small window holds, with hardly a turn in between.
func (w *world) burst(t *rapid.T) {
	for range rapid.IntRange(2, 40).Draw(t, "writes") {
		w.write(t)
		w.executor.RunN(rapid.IntRange(0, 2).Draw(t, "turns"))
	}
}

func (w *world) turns(t *rapid.T) { w.executor.RunN(rapid.IntRange(1, 20).Draw(t, "turns")) }
func (w *world) settle(*rapid.T)  { w.executor.Run() }

// drawRecord draws what a watch asks for, but for where it starts.
func (w *world) drawRecord(t *rapid.T) *record {
	r := &record{want: wants[rapid.IntRange(0, len(wants)-1).Draw(t, "want")], handled: rapid.Bool().Draw(t, "handled")}
	r.opts = r.want.opts
	r.opts.Policy = rapid.SampledFrom([]engine.Policy{engine.Park, engine.Terminate, engine.Conflate}).Draw(t, "policy")
	r.opts.Buffer = rapid.SampledFrom([]int{0, 1, 3, 10}).Draw(t, "buffer")
	r.opts.Bookmarks = rapid.Bool().Draw(t, "bookmarks")
	r.opts.Latest = rapid.Bool().Draw(t, "latest")
	if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
		r.opts.Timeout = rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second}).Draw(t, "timeout")
	}
	return r
}

func (w *world) watch(t *rapid.T) {
	r := w.drawRecord(t)
	r.opts.InitialState = rapid.Bool().Draw(t, "state")
	if rapid.Bool().Draw(t, "from") {
		r.opts.From = engine.Revision(rapid.IntRange(1, int(w.newest())+3).Draw(t, "revision"))
	}
	if r.handled && !r.opts.InitialState && r.opts.From == 0 {
		// Nobody could say later when "now" was, unless nothing happens meanwhile.
		if w.executor.Run(); w.engine.Revision() != w.newest() {
			r.opts.From = w.newest()
		}
	}
	w.start(t, r)
}

// last starts a watch with the newest events. Which these are is known only
// while nothing is under way and the engine has seen each of them happen.
func (w *world) last(t *rapid.T) {
	r := w.drawRecord(t)
	r.opts.Last = rapid.SampledFrom([]int{1, 2, 7, 100}).Draw(t, "last")
	w.executor.Run()
	s := w.engine.Stats()
	r.first = w.newest() - engine.Revision(min(r.opts.Last, s.WindowEvents))
	for rev := r.first + 1; rev <= w.newest(); rev++ {
		if !w.witnessed[rev] {
			return
		}
	}
	if s.Ready && s.Revision == w.newest() {
		w.start(t, r)
	}
}

// start starts the watch that r describes, if the engine lets it.
func (w *world) start(t *rapid.T, r *record) {
	r.name = fmt.Sprintf("w%d", len(w.records))
	r.from = w.engine.Revision()
	if r.opts.Latest {
		r.from = max(r.from, w.newest())
	}
	if r.opts.InitialState {
		r.from = max(r.from, r.opts.From)
	}
	var err error
	if r.handled {
		r.watch, err = w.engine.Handle(context.Background(), r.opts, func(ev engine.Event[thing]) { r.events = append(r.events, ev) })
	} else {
		r.watch, err = w.engine.Watch(context.Background(), r.opts)
	}
	if r.until = w.newest(); err != nil {
		w.refused(t, r, err)
		return
	}
	if from := r.from; from <= r.until && !r.handled && !r.opts.InitialState && r.opts.From == 0 && r.opts.Last == 0 {
		r.until = r.watch.Revision()
		require.GreaterOrEqual(t, r.until, from, "where a watch from now starts")
		r.from = r.until
	}
	w.records = append(w.records, r)
}

// refused: a watch may be refused only for what is wrong at the time.
func (w *world) refused(t *rapid.T, r *record, err error) {
	switch {
	case r.opts.Last > 0:
		t.Fatalf("the newest events, of a cache that is ready: %v", err)
	case errors.Is(err, engine.ErrExpired):
		floor := w.engine.Stats().WindowFloor
		require.True(t, r.opts.From < floor || !w.witnessed[r.opts.From], "%v, but the window starts at %d", err, floor)
	case errors.Is(err, engine.ErrNotReady), errors.Is(err, engine.ErrFuture), errors.Is(err, engine.ErrIdle):
		require.True(t, w.executor.Pending() == 0 || !errors.Is(err, engine.ErrIdle), "idle with turns left")
	default:
		t.Fatalf("watch %+v: %v", r.opts, err)
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
		r.end = r.watch.Err()
		return
	}
	for ev, err := range r.watch.Events() {
		if errors.Is(err, engine.ErrIdle) {
			break
		}
		if err != nil {
			r.end = err
			break
		}
		if r.events = append(r.events, ev); len(r.events)%3 == 0 {
			r.claims = append(r.claims, claim{len(r.events), r.watch.Revision()})
		}
		if n--; n == 0 {
			break
		}
	}
	r.claims = append(r.claims, claim{len(r.events), r.watch.Revision()})
}

// resume starts a watch where another one's consumer stands, which may go on.
func (w *world) resume(t *rapid.T) {
	r := w.some(t)
	if r == nil || r.handled {
		return
	}
	from := r.watch.Revision()
	r.claims = append(r.claims, claim{len(r.events), from})
	opts := r.opts
	opts.From, opts.InitialState, opts.Last = from, from == 0, 0
	w.start(t, &record{want: r.want, opts: opts})
}

func (w *world) stop(t *rapid.T) {
	if r := w.some(t); r != nil {
		r.watch.Stop()
	}
}

func (w *world) advance(t *rapid.T) {
	for range rapid.SampledFrom([]int{1, 3, 20}).Draw(t, "seconds") {
		w.clock.Advance(time.Second)
		w.executor.RunN(rapid.SampledFrom([]int{0, 3, 1000}).Draw(t, "turns"))
	}
}

// disturb does something to the backend.
func (w *world) disturb(t *rapid.T) {
	switch rapid.IntRange(0, 6).Draw(t, "mood") {
	case 0:
		w.source.sever(store.ErrClosed)
	case 1:
		w.source.sever(errOutage)
	case 2:
		w.source.sever(&store.ExpiredError{Requested: 1, Oldest: 2})
	case 3:
		w.source.lose = true
	case 4:
		w.source.repeat = true
	case 5:
		w.source.failLists = rapid.IntRange(1, 3).Draw(t, "lists")
		w.source.sever(&store.ExpiredError{Requested: 1, Oldest: 2})
	case 6:
		w.source.failWatches = rapid.IntRange(1, 9).Draw(t, "watches")
		w.source.sever(errOutage)
	}
}

func (w *world) compact(t *rapid.T) {
	rev := engine.Revision(rapid.IntRange(1, int(w.newest())).Draw(t, "revision"))
	require.NoError(t, w.source.Compact(context.Background(), rev))
}

// finish makes the backend good, lets the engine catch up and gives every
// consumer what there is. Then all is judged, the engine closed, and judged
// again.
func (w *world) finish() {
	w.source.heal()
	for range 600 {
		w.executor.Run()
		if s := w.engine.Stats(); s.Ready && s.Revision == w.newest() && s.Source.Phase == reflector.Watching {
			break
		}
		w.clock.Advance(100 * time.Millisecond)
	}
	require.Equal(w.t, w.newest(), w.engine.Revision(), "the engine does not catch up: %+v", w.engine.Stats())
	w.executor.Run()
	for _, r := range w.records {
		w.take(r, 1<<30)
		r.drained = true
	}
	w.judge()
	w.conserved()
	w.close()
}

func (w *world) judge() {
	for _, r := range w.records {
		if err := w.verdict(r); err != nil {
			w.t.Fatalf("%s %+v (started in [%d,%d], ended %v): %v\nevents %v\nclaims %v", r.name, r.opts, r.from, r.until, r.end, err, r.events, r.claims)
		}
	}
}

// conserved: the figures account for every watch and every end.
func (w *world) conserved() {
	w.executor.Run()
	var living int64
	ends := map[error]uint64{}
	for _, r := range w.records {
		if r.end == nil {
			living++
		}
		for _, reason := range []error{engine.ErrExpired, engine.ErrSlowConsumer, engine.ErrDeadline} {
			if errors.Is(r.end, reason) {
				ends[reason]++
			}
		}
	}
	s := w.engine.Stats()
	require.Equal(w.t, living, s.Watches, "watches that live")
	require.Equal(w.t, ends[engine.ErrSlowConsumer], s.Terminated)
	require.Equal(w.t, ends[engine.ErrDeadline], s.DeadlinesReached)
	// A watch that the window has overrun may end for something else before its
	// consumer gets there.
	require.LessOrEqual(w.t, ends[engine.ErrExpired], s.Expired, "watches that say they expired")
	require.LessOrEqual(w.t, s.Expired, uint64(len(w.records))-uint64(living), "watches that the window has overrun")
}

// reasons are all that can end a watch whose handler does not panic.
var reasons = []error{
	engine.ErrStopped, engine.ErrExpired, engine.ErrSlowConsumer, engine.ErrDeadline, engine.ErrEngineClosed,
}

// close closes the engine: every watch ends, for one reason and for good, and
// nothing is left.
func (w *world) close() {
	require.NoError(w.t, w.engine.Close())
	for _, r := range w.records {
		end := r.watch.Err()
		switch {
		case r.end != nil:
			require.Equal(w.t, r.end, end, "%s: the reason changed", r.name)
		default: // closing lets go on what is under way, which may end a watch
			require.True(w.t, slices.ContainsFunc(reasons, func(reason error) bool { return errors.Is(end, reason) }), "%s: %v", r.name, end)
		}
		<-r.watch.Done()
		if w.take(r, 1<<30); !r.handled {
			require.Equal(w.t, end, r.end, "%s: what the consumer is told", r.name)
		}
	}
	require.NoError(w.t, w.source.Close())
	require.Zero(w.t, w.host.Actors(), "actors outlive the engine")
	require.Zero(w.t, w.host.Timers(), "timers outlive the engine")
	require.NoError(w.t, w.host.Close())
}

var _ backend.Backend[thing] = (*moody)(nil)
