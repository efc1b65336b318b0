package bench_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/window"
)

// Benchmarks of the stages of one event. Each prepares its input while the timer stands, so a
// figure is that of its stage alone. Where the input is a history, an operation is a whole
// one, and ns/event says what each event took.

// events is the length of a history.
const events = 100_000

// object is the object that is written.
var object = bench.Object{Name: "pod", Node: "node", App: "app"}

// config describes objects as the engine under measurement does.
var config = engine.Config[bench.Object]{
	Key:    bench.Object.Key,
	Labels: func(o bench.Object) labels.Set { return labels.Set{bench.AppLabel: o.App} },
	Fields: engine.Fields[bench.Object]{bench.NodeField: func(o bench.Object) string { return o.Node }},
}

var schema = config.Schema()

// draft returns an object to be written.
func draft(value bench.Object) *store.Object {
	o := schema.New()
	o.Key, *schema.Pointer(o).(*bench.Object) = value.Key(), value
	schema.Describe(o)
	return o
}

// written returns a backend with that many writes in its history.
func written(b *testing.B, writes int) *memory.Backend {
	m, err := memory.New(schema, memory.Options{FirstRevision: 1, Retain: window.Limits{MinEvents: writes, MaxEvents: writes + 1000}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, m.Close()) })
	write(b, m, writes)
	return m
}

func write(b *testing.B, m *memory.Backend, writes int) {
	var last *store.Object
	for i := range writes {
		o := object
		o.Seq = int64(i)
		var err error
		if last, err = m.Put(context.Background(), draft(o), last, backend.PutOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStageBackend measures commits.
func BenchmarkStageBackend(b *testing.B) {
	m := written(b, 0)
	b.ReportAllocs()
	b.ResetTimer()
	write(b, m, b.N)
}

// emptyAtFirst lists nothing, so that every object arrives by watch.
type emptyAtFirst struct{ *memory.Backend }

func (emptyAtFirst) List(context.Context, backend.ListOptions) (*backend.List, error) {
	return &backend.List{Revision: 1, Items: []*store.Object{}}, nil
}

// untilRevision is a sink that accepts everything, and closes done at the revision last.
type untilRevision struct {
	last store.Revision
	done chan struct{}
}

func (s untilRevision) Offer(u reflector.Update) actors.Verdict {
	if u.Revision == s.last {
		close(s.done)
	}
	return actors.Accepted
}

// overHistory measures what setUp returns, each time with a new system of actors, which
// handles a whole history.
func overHistory(b *testing.B, setUp func(*actors.System) (run func())) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		system, err := actors.NewSystem(actors.SystemConfig{})
		require.NoError(b, err)
		run := setUp(system)
		b.StartTimer()
		run()
		b.StopTimer()
		require.NoError(b, system.Close(context.Background()))
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
}

// BenchmarkStageReflector follows a history that is already there.
func BenchmarkStageReflector(b *testing.B) {
	source := emptyAtFirst{written(b, events)}
	overHistory(b, func(system *actors.System) func() {
		sink := untilRevision{last: events + 1, done: make(chan struct{})}
		return func() {
			_, err := reflector.Spawn(system, reflector.Config{Source: source, Sink: sink, Rand: rand.New(rand.NewPCG(1, 1))})
			require.NoError(b, err)
			<-sink.done
		}
	})
}

// pipeline is a watchCache with dispatcher and watchers, to which a test passes updates.
type pipeline struct {
	cache     *watchcache.Cache
	published window.Published
	feed      watcher.Feed
	room      chan struct{}
}

func newPipeline(b *testing.B, system *actors.System) *pipeline {
	p := &pipeline{room: make(chan struct{}, 1)}
	p.feed.Registry = new(watcher.Registry)
	down := dispatcher.Spawn(system, dispatcher.Config{
		Schema: &schema,
		Source: &p.published, Feed: &p.feed, Rand: rand.New(rand.NewPCG(1, 1)), Stats: &dispatcher.Stats{},
	})
	p.cache = watchcache.Spawn(system, clock.Real(), watchcache.Config{
		Schema:    &schema,
		Published: &p.published, Dispatcher: down, Relist: func(reflector.Reason) {},
		OnRoom: func() {
			select {
			case p.room <- struct{}{}:
			default:
			}
		},
		Report: func(err error) { b.Error(err) }, Stats: &watchcache.Stats{},
	})
	p.offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started, Revision: 1})
	return p
}

// offer passes an update to the cache, and waits while that has no room.
func (p *pipeline) offer(u reflector.Update) {
	for p.cache.Offer(u) == actors.Full {
		<-p.room
	}
}

// watch registers a watch that calls handle.
func (p *pipeline) watch(b *testing.B, fieldSelector string, handle func(store.Event)) {
	filter, err := store.NewFilter(schema.Fields, store.FilterOptions{Fields: fieldSelector})
	require.NoError(b, err)
	reply := make(chan error, 1)
	p.cache.Register(watchcache.Register{
		Watch: watcher.NewHandled(&p.feed, watcher.Options{OnPool: true}, eachOf(handle)), Filter: filter, Reply: reply,
	})
	require.NoError(b, <-reply)
}

func eachOf(handle func(store.Event)) func(*watcher.Delivery) {
	return func(d *watcher.Delivery) {
		for i, ev := range d.Events() {
			if !d.Begin(i) {
				return
			}
			handle(ev)
		}
	}
}

// batches returns a history as updates of a Reflector.
func batches(b *testing.B) []reflector.Update {
	w, err := written(b, events).Watch(context.Background(), backend.WatchOptions{From: 1, Notify: func() {}})
	require.NoError(b, err)
	defer w.Close()
	var all []reflector.Update
	for {
		batch, err := w.Next(reflector.DefaultMaxBatch)
		require.NoError(b, err)
		if len(batch.Events) == 0 {
			return all
		}
		all = append(all, reflector.Update{Kind: reflector.Changes, Revision: batch.Through, Events: batch.Events})
	}
}

// run feeds the history and waits until the cache has it.
func (p *pipeline) run(b *testing.B, history []reflector.Update) {
	for _, u := range history {
		p.offer(u)
	}
	reply := make(chan error, 1)
	p.cache.Wait(watchcache.Wait{Revision: events + 1, Until: time.Now().Add(time.Minute), Reply: reply})
	require.NoError(b, <-reply)
}

// BenchmarkStageWatchCache applies and publishes without watchers.
func BenchmarkStageWatchCache(b *testing.B) {
	history := batches(b)
	overHistory(b, func(system *actors.System) func() {
		p := newPipeline(b, system)
		return func() { p.run(b, history) }
	})
}

// BenchmarkStageDispatch adds the dispatch of each event to the one watcher that
// it matches, among 1,000.
func BenchmarkStageDispatch(b *testing.B) {
	history := batches(b)
	overHistory(b, func(system *actors.System) func() {
		p := newPipeline(b, system)
		for i := range 1000 {
			p.watch(b, bench.NodeField+"=other-"+string(rune('a'+i%26)), func(store.Event) {})
		}
		return p.watched(b, bench.NodeField+"="+object.Node, history)
	})
}

// BenchmarkStageWatcher adds one watcher of everything instead.
func BenchmarkStageWatcher(b *testing.B) {
	history := batches(b)
	overHistory(b, func(system *actors.System) func() {
		return newPipeline(b, system).watched(b, "", history)
	})
}

// watched registers a watch, and returns a run that ends when it has the last write.
func (p *pipeline) watched(b *testing.B, fieldSelector string, history []reflector.Update) (run func()) {
	done := make(chan struct{})
	p.watch(b, fieldSelector, func(ev store.Event) {
		if ev.Revision == events+1 {
			close(done)
		}
	})
	return func() {
		p.run(b, history)
		<-done
	}
}

// BenchmarkStageInitialState delivers the state of 10,000 objects to a new watch.
func BenchmarkStageInitialState(b *testing.B) {
	const objects = 10_000
	opened, err := bench.Watchmill().Store(b.Context())
	require.NoError(b, err)
	defer func() { require.NoError(b, opened.Close()) }()
	var last uint64
	for i := range objects {
		o := object
		o.Name = strconv.Itoa(i)
		last, err = opened.Write(b.Context(), o)
		require.NoError(b, err)
	}
	require.NoError(b, opened.WaitFor(b.Context(), last))
	b.ReportAllocs()
	for b.Loop() {
		done, missing := make(chan struct{}), objects
		w, err := opened.(bench.StateStore).WatchState(b.Context(), func(int64) {
			if missing--; missing == 0 {
				close(done)
			}
		})
		require.NoError(b, err)
		<-done
		w.Stop()
	}
}

// BenchmarkEndToEnd writes through an engine to one watcher, one event at a time:
// the latency of all stages with nothing queued.
func BenchmarkEndToEnd(b *testing.B) {
	store, err := bench.Watchmill().Store(b.Context())
	require.NoError(b, err)
	defer func() { require.NoError(b, store.Close()) }()
	seen := make(chan int64, 1)
	_, err = store.Watch(b.Context(), bench.Selection{}, 0, func(seq int64) { seen <- seq })
	require.NoError(b, err)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o := object
		o.Seq = int64(i)
		if _, err := store.Write(b.Context(), o); err != nil {
			b.Fatal(err)
		}
		<-seen
	}
}
