package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// TestProperty_RandomHistories plays random histories and has package judge
// hold what is shown against versioned storage:
//
//   - 153: a watch's revisions increase, after an initial state in key order;
//   - 154: what it delivers is what its selection shows of all that happened,
//     unless it says otherwise;
//   - 155: nothing up to a bookmark comes after it, everything before;
//   - 156: a list and a watch from there make every later state;
//   - 157: a linearizable read sees all that was acknowledged before;
//
// and every watch ends for exactly one reason, and nothing outlives Close.
//
// Package explore does the same with more faults, from numbered seeds. Here rapid
// draws as it goes, and so can ask for what it knows to be there.
func TestProperty_RandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
		w.finish()
	})
}

// TestProperty_CloseAtAnyMoment closes in the middle of everything.
func TestProperty_CloseAtAnyMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
		for _, r := range w.records {
			w.ended(r, r.watch.Err())
		}
		w.judge()
		w.close()
	})
}

// world is an engine on a deterministic host, a backend with moods, some
// watches, and the history that they are held against.
type world struct {
	t        *rapid.T
	history  *judge.History[thing]
	clock    *actors.VirtualClock
	executor *actors.Seeded
	host     *engine.Host
	source   *faultyBackend
	engine   *engine.Engine[thing]
	records  []*record
	serial   int
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, history: judge.NewHistory(sameThing),
		clock:    actors.NewVirtualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		executor: actors.NewSeeded(rapid.Uint64().Draw(t, "seed")),
	}
	var err error
	w.host, err = engine.NewHost(engine.HostConfig{Clock: w.clock, Executor: singleStepping{w.executor}, Seed: 1})
	require.NoError(t, err)
	w.source = newFaultyBackend(w.host.Clock())
	w.source.traits.Blocks = rapid.Bool().Draw(t, "blocks")
	w.source.batch = rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "batch")
	w.source.given = w.history.Given
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

func (w *world) newest() engine.Revision { return w.history.Newest() }

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
	_, _, there := w.history.Get(value.Key)
	switch verb := rapid.IntRange(0, 9).Draw(t, "verb"); {
	case verb == 0:
		rev, err := w.engine.Emit(ctx, value)
		require.NoError(t, err)
		require.Equal(t, w.history.Emit(value.Key, value), rev)
	case verb < 4 && there:
		o, err := w.engine.Delete(ctx, value.Key, engine.DeleteOptions{})
		require.NoError(t, err)
		require.Equal(t, w.history.Delete(value.Key), o.Revision)
	default:
		rev, err := revisionOf(w.engine.Put(ctx, value))
		require.NoError(t, err)
		require.Equal(t, w.history.Put(value.Key, value), rev)
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
		w.source.Lose = true
	case 4:
		w.source.Repeat = true
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
		r.Drained = true
	}
	w.judge()
	w.executor.Run()
	require.NoError(w.t, judge.JudgeFigures(w.figures(), w.ends()))
	w.close()
}

func (w *world) judge() {
	for _, r := range w.records {
		if err := w.history.Judge(&r.Record); err != nil {
			w.t.Fatalf("%+v (started in [%d,%d]): %v\nevents %v\nclaims %v", r.Options, r.Earliest, r.Latest, err, r.Events, r.Claims)
		}
	}
}

// figures are what the engine says of its watches.
func (w *world) figures() judge.Figures {
	s := w.engine.Stats()
	return judge.Figures{
		Living: s.Watches, SlowConsumers: s.Terminated, Deadlines: s.DeadlinesReached, Panics: s.Panicked, Expired: s.Expired,
	}
}

// close closes the engine: every watch ends, its consumer is told, and nothing is
// left.
func (w *world) close() {
	for _, r := range w.records {
		if r.watch.Err() == nil && len(r.Causes) == 0 {
			r.Causes = append(r.Causes, engine.ErrEngineClosed)
		}
	}
	require.NoError(w.t, w.engine.Close())
	for _, r := range w.records {
		<-r.watch.Done()
		w.ended(r, r.watch.Err())
		known := len(r.Ends)
		w.take(r, 1<<30)
		require.Len(w.t, r.Ends, known+1, "%s: its consumer is told", r.Name)
		require.NotErrorIs(w.t, r.End(), engine.ErrHandlerPanic, "%s: no handler panics here", r.Name)
	}
	w.judge()
	require.NoError(w.t, w.source.Close())
	require.NoError(w.t, judge.JudgeLeft(w.host.Actors(), w.host.Timers(), w.host.ActorNames()))
	require.NoError(w.t, w.host.Close())
}

func sameThing(a, b thing) bool { return a == b }

// want is a selection as the engine takes it, and the same as a function: the
// judge must not ask the code that he judges.
type want struct {
	opts  engine.WatchOptions
	match func(thing) bool
}

// list asks for what the selection shows.
func (w want) list(read engine.Read) engine.ListOptions {
	return engine.ListOptions{Key: w.opts.Key, Prefix: w.opts.Prefix, Labels: w.opts.Labels, Fields: w.opts.Fields, Read: read}
}

var wants = []want{
	{engine.WatchOptions{}, func(thing) bool { return true }},
	{engine.WatchOptions{Labels: "app=web"}, func(o thing) bool { return o.App == "web" }},
	{engine.WatchOptions{Labels: "app!=web"}, func(o thing) bool { return o.App != "web" }},
	{engine.WatchOptions{Labels: "app in (web,db)"}, func(o thing) bool { return o.App == "web" || o.App == "db" }},
	{engine.WatchOptions{Fields: "node=n1"}, func(o thing) bool { return o.Node == "n1" }},
	{engine.WatchOptions{Fields: "node!=n1", Labels: "app=db"}, func(o thing) bool { return o.Node != "n1" && o.App == "db" }},
	{engine.WatchOptions{Prefix: "x"}, func(o thing) bool { return strings.HasPrefix(o.Key, "x/") }},
	{engine.WatchOptions{Key: "y/1"}, func(o thing) bool { return o.Key == "y/1" }},
	{engine.WatchOptions{Prefix: "y", Labels: "app=web"}, func(o thing) bool { return strings.HasPrefix(o.Key, "y/") && o.App == "web" }},
}
