package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

type traceKey struct{}

// traced is an object that says which trace it was written by.
type traced struct {
	Name  string
	N     int
	Trace string
}

func tracedConfig() engine.Config[traced] {
	return engine.Config[traced]{
		Key:   func(v traced) string { return v.Name },
		Equal: func(a, b traced) bool { return a.Name == b.Name && a.N == b.N },
		Carry: func(ctx context.Context, v traced) traced {
			v.Trace, _ = ctx.Value(traceKey{}).(string)
			return v
		},
		FirstRevision:    1,
		FreshnessTimeout: patience,
	}
}

// Each kind of write carries what its context has to each consumer; a write that
// changes nothing else writes nothing.
func TestCarry_FromEachWriterToItsConsumers(t *testing.T) {
	e, err := engine.New(tracedConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.WaitForRevision(t.Context(), 1))
	w, err := e.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	var last engine.Revision
	for _, write := range []struct {
		trace string
		do    func(ctx context.Context) (*engine.Object[traced], error)
	}{
		{"create", func(ctx context.Context) (*engine.Object[traced], error) { return e.Create(ctx, traced{Name: "a"}) }},
		{"put", func(ctx context.Context) (*engine.Object[traced], error) { return e.Put(ctx, traced{Name: "a", N: 1}) }},
		{"put the same", func(ctx context.Context) (*engine.Object[traced], error) { return e.Put(ctx, traced{Name: "a", N: 1}) }},
		{"update", func(ctx context.Context) (*engine.Object[traced], error) {
			return e.Update(ctx, "a", func(v traced) (traced, error) { v.N = 2; return v, nil }, engine.UpdateOptions{})
		}},
		{"replace", func(ctx context.Context) (*engine.Object[traced], error) {
			return e.Replace(ctx, traced{Name: "a", N: 3}, last)
		}},
		{"modify", func(ctx context.Context) (*engine.Object[traced], error) {
			return e.Modify(ctx, "a", func(o *engine.Object[traced]) (engine.Change[traced], error) {
				return engine.Change[traced]{Value: traced{Name: "a", N: o.Value.N + 1}}, nil
			}, engine.ModifyOptions{})
		}},
		{"modify nothing", func(ctx context.Context) (*engine.Object[traced], error) {
			return e.Modify(ctx, "a", func(o *engine.Object[traced]) (engine.Change[traced], error) {
				return engine.Change[traced]{Value: o.Value}, nil
			}, engine.ModifyOptions{})
		}},
		{"emit", func(ctx context.Context) (*engine.Object[traced], error) {
			rev, err := e.Emit(ctx, traced{Name: "b"})
			return &engine.Object[traced]{Revision: rev}, err
		}},
	} {
		o, err := write.do(context.WithValue(t.Context(), traceKey{}, write.trace))
		require.NoError(t, err)
		last = o.Revision
	}
	var seen []string
	for ev, err := range w.Events() {
		require.NoError(t, err)
		if seen = append(seen, ev.Object.Value.Trace); ev.Revision == last {
			break
		}
	}
	require.Equal(t, []string{"create", "put", "update", "replace", "modify", "emit"}, seen)
}

// The key was taken from the value before.
func TestCarry_ToAnotherKeyIsRefused(t *testing.T) {
	c := tracedConfig()
	c.Carry = func(_ context.Context, v traced) traced { v.Name = "tenant-" + v.Name; return v }
	e, err := engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	created, err := e.Create(t.Context(), traced{Name: "a"})
	require.NoError(t, err)
	require.Equal(t, "tenant-a", created.Key, "a new object's key is taken from what it carries")
	for name, write := range map[string]func() (*engine.Object[traced], error){
		"put": func() (*engine.Object[traced], error) { return e.Put(t.Context(), traced{Name: "b"}) },
		"replace": func() (*engine.Object[traced], error) {
			return e.Replace(t.Context(), traced{Name: "tenant-a", N: 1}, created.Revision)
		},
	} {
		_, err := write()
		require.ErrorIs(t, err, engine.ErrInvalidKey, name)
	}
	_, err = e.Emit(t.Context(), traced{Name: "b"})
	require.ErrorIs(t, err, engine.ErrInvalidKey)
	list, err := e.List(t.Context(), engine.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1, "nothing else was written")
}

// A write that changes only when the object expires is a write like any other: its event, and
// the object that is stored, have what it carries. One that leaves the expiry as it is writes
// nothing.
func TestCarry_ByAWriteOfTheExpiryAlone(t *testing.T) {
	same := func(v traced) (traced, error) { return v, nil }
	type write func(ctx context.Context, e *engine.Engine[traced], ttl time.Duration, permanent bool) (*engine.Object[traced], error)
	for name, write := range map[string]write{
		"put": func(ctx context.Context, e *engine.Engine[traced], ttl time.Duration, permanent bool) (*engine.Object[traced], error) {
			return e.PutWith(ctx, traced{Name: "a"}, engine.PutOptions{TTL: ttl, Permanent: permanent})
		},
		"update": func(ctx context.Context, e *engine.Engine[traced], ttl time.Duration, permanent bool) (*engine.Object[traced], error) {
			return e.Update(ctx, "a", same, engine.UpdateOptions{TTL: ttl, Permanent: permanent})
		},
		"modify": func(ctx context.Context, e *engine.Engine[traced], ttl time.Duration, permanent bool) (*engine.Object[traced], error) {
			return e.Modify(ctx, "a", func(o *engine.Object[traced]) (engine.Change[traced], error) {
				return engine.Change[traced]{Value: o.Value, TTL: ttl, Permanent: permanent}, nil
			}, engine.ModifyOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := engine.New(tracedConfig())
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			in := func(trace string) context.Context { return context.WithValue(t.Context(), traceKey{}, trace) }
			_, err = e.CreateWith(in("create"), traced{Name: "a"}, engine.CreateOptions{TTL: time.Hour})
			require.NoError(t, err)

			renewed, err := write(in("renew"), e, 2*time.Hour, false)
			require.NoError(t, err)
			require.Equal(t, "renew", renewed.Value.Trace)
			permanent, err := write(in("make permanent"), e, 0, true)
			require.NoError(t, err)
			require.Equal(t, "make permanent", permanent.Value.Trace)
			unchanged, err := write(in("leave permanent"), e, 0, true)
			require.NoError(t, err)
			require.Equal(t, permanent, unchanged, "nothing was written")
		})
	}
}

// A write that meets a conflict is tried again with the value that the caller gave.
func TestCarry_OnceToAWriteThatIsTriedAgain(t *testing.T) {
	c := tracedConfig()
	var e *engine.Engine[traced]
	calls := 0
	c.Carry = func(ctx context.Context, v traced) traced {
		v.Trace += "+"
		if calls++; calls == 2 {
			_, err := e.Put(ctx, traced{Name: "a", N: 2})
			require.NoError(t, err)
		}
		return v
	}
	var err error
	e, err = engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	_, err = e.Put(t.Context(), traced{Name: "a", N: 1})
	require.NoError(t, err)
	last, err := e.Put(t.Context(), traced{Name: "a", N: 3})
	require.NoError(t, err)
	require.Equal(t, 4, calls, "the write of 3, that of 2 between, and 3 again")
	require.Equal(t, traced{Name: "a", N: 3, Trace: "+"}, last.Value)
}

func TestCarry_ThatPanicsFailsTheWrite(t *testing.T) {
	c, fails := tracedConfig(), true
	c.Carry = func(_ context.Context, v traced) traced {
		if fails {
			panic("no trace")
		}
		return v
	}
	e, err := engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	requireFailed := func(err error) {
		t.Helper()
		var panicked *usercode.PanicError
		require.ErrorAs(t, err, &panicked)
		require.Equal(t, "Config.Carry", panicked.Func)
	}
	_, err = e.Create(t.Context(), traced{Name: "a"})
	requireFailed(err)
	_, err = e.Put(t.Context(), traced{Name: "a"})
	requireFailed(err)
	_, err = e.Emit(t.Context(), traced{Name: "a"})
	requireFailed(err)
	_, err = e.Get(t.Context(), "a", engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)

	fails = false
	created, err := e.Create(t.Context(), traced{Name: "a"})
	require.NoError(t, err)
	fails = true
	_, err = e.Update(t.Context(), "a", func(v traced) (traced, error) { v.N++; return v, nil }, engine.UpdateOptions{})
	requireFailed(err)
	_, err = e.Modify(t.Context(), "a", func(o *engine.Object[traced]) (engine.Change[traced], error) {
		return engine.Change[traced]{Value: traced{Name: "a", N: 1}}, nil
	}, engine.ModifyOptions{})
	requireFailed(err)
	got, err := e.Get(t.Context(), "a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, created.Revision, got.Revision)
}

// A message carries what its publisher's context has to each subscriber, also to one
// that is replayed it.
func TestCarry_FromAPublisherToItsSubscribers(t *testing.T) {
	topic := engine.NewTopicCarrying(engine.TopicOptions{Replay: 10}, tracedConfig().Carry)
	defer func() { require.NoError(t, topic.Close()) }()
	live, err := topic.Watch(t.Context(), engine.SubscribeOptions{})
	require.NoError(t, err)
	for _, trace := range []string{"first", "second"} {
		_, err := topic.Publish(context.WithValue(t.Context(), traceKey{}, trace), traced{Name: "a", Trace: "of before"})
		require.NoError(t, err)
	}
	replayed, err := topic.Watch(t.Context(), engine.SubscribeOptions{Last: 2})
	require.NoError(t, err)
	for _, w := range []*engine.Watch[traced]{live, replayed} {
		var seen []string
		for ev, err := range w.Events() {
			require.NoError(t, err)
			if seen = append(seen, ev.Object.Value.Trace); len(seen) == 2 {
				break
			}
		}
		require.Equal(t, []string{"first", "second"}, seen)
	}
}

func TestCarry_ThatPanicsFailsThePublish(t *testing.T) {
	topic := engine.NewTopicCarrying(engine.TopicOptions{}, func(context.Context, int) int { panic("no trace") })
	defer func() { require.NoError(t, topic.Close()) }()
	_, err := topic.Publish(t.Context(), 1)
	var panicked *usercode.PanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "Config.Carry", panicked.Func)
}

// A message carries the trace that it is published in.
func ExampleNewTopicCarrying() {
	type spanKey struct{}
	type Mail struct{ To, Trace string }
	mails := engine.NewTopicCarrying(engine.TopicOptions{}, func(ctx context.Context, m Mail) Mail {
		m.Trace, _ = ctx.Value(spanKey{}).(string) // OpenTelemetry: inject
		return m
	})
	defer mails.Close()
	sent := make(chan struct{})
	_, err := mails.Subscribe(context.Background(), func(m Mail) {
		defer close(sent)
		fmt.Println("mail to", m.To, "in", m.Trace)
	})
	must(err)
	_, err = mails.Publish(context.WithValue(context.Background(), spanKey{}, "order 7"), Mail{To: "ann"})
	must(err)
	<-sent
	// Output: mail to ann in order 7
}

// endings are Metrics that count the ends of watches, by engine.
type endings struct {
	ages
	mu    sync.Mutex
	ended map[string]int
}

func (m *endings) Ended(engine string, _ engine.WatchEnd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended == nil {
		m.ended = map[string]int{}
	}
	m.ended[engine]++
}

// An engine or topic with a host of its own has metrics, and one on a shared host may
// have others than that.
func TestMetrics_OfOneEngine(t *testing.T) {
	own, shared := new(endings), new(endings)
	host := hostFor(t, engine.HostConfig{Metrics: shared})
	open := func(name string, change func(*engine.Config[pod])) {
		e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Name = name; change(c) })
		w, err := e.Watch(ctx, engine.WatchOptions{})
		require.NoError(t, err)
		w.Stop()
		require.NoError(t, e.Close())
	}
	open("private", func(c *engine.Config[pod]) { c.Metrics = own })
	open("hosted", func(c *engine.Config[pod]) { c.Host = host })
	open("hosted with its own", func(c *engine.Config[pod]) { c.Host, c.Metrics = host, own })
	topic := engine.NewTopicWith[int](engine.TopicOptions{Name: "topic", Metrics: own})
	sub, err := topic.Subscribe(t.Context(), func(int) {})
	require.NoError(t, err)
	sub.Stop()
	require.NoError(t, topic.Close())
	require.Equal(t, map[string]int{"private": 1, "hosted with its own": 1, "topic": 1}, own.ended)
	require.Equal(t, map[string]int{"hosted": 1}, shared.ended)
}

// With OpenTelemetry, Carry injects the context into the value, and the consumer
// extracts it and starts a span that continues the writer's:
//
//	Carry: func(ctx context.Context, o Order) Order {
//		carrier := propagation.MapCarrier{}
//		otel.GetTextMapPropagator().Inject(ctx, carrier)
//		o.Trace = carrier["traceparent"]
//		return o
//	}
//
//	ctx = otel.GetTextMapPropagator().Extract(ctx, propagation.MapCarrier{"traceparent": o.Trace})
//	ctx, span := tracer.Start(ctx, "bill")
//
// Here inject and extract stand for the propagator.
func Example_traceContext() {
	type spanKey struct{}
	inject := func(ctx context.Context) string { parent, _ := ctx.Value(spanKey{}).(string); return parent }
	extract := func(ctx context.Context, parent string) context.Context {
		return context.WithValue(ctx, spanKey{}, parent)
	}
	type Order struct{ ID, Trace string }
	orders, err := engine.New(engine.Config[Order]{
		Key:   func(o Order) string { return o.ID },
		Equal: func(a, b Order) bool { return a.ID == b.ID }, // whatever wrote it
		Carry: func(ctx context.Context, o Order) Order { o.Trace = inject(ctx); return o },
	})
	must(err)
	defer orders.Close()

	billed := make(chan struct{})
	_, err = orders.Process(context.Background(), engine.WatchOptions{}, engine.ErrorPolicy{},
		func(ctx context.Context, ev engine.Event[Order]) error {
			defer close(billed)
			ctx = extract(ctx, ev.Object.Value.Trace)
			fmt.Println("bill", ev.Key(), "in", inject(ctx))
			return nil
		})
	must(err)
	request := context.WithValue(context.Background(), spanKey{}, "00-4bf92f35-00f067aa-01")
	_, err = orders.Create(request, Order{ID: "7"})
	must(err)
	<-billed
	// Output: bill 7 in 00-4bf92f35-00f067aa-01
}

// A package with rules of its own writes through the engine's backend: it sees the
// object that it replaces, and is refused once the engine is closed.
func ExampleWriterOf() {
	ctx := context.Background()
	pods := newNodes(ctx)
	writer := backend.NewStorage(engine.WriterOf(pods), engine.Config[Pod]{
		Key: func(p Pod) string { return p.Namespace + "/" + p.Name },
	}.Schema())
	move := func(_ context.Context, o *store.Object) (*store.Object, error) {
		next := *store.As[engine.Object[Pod]](o)
		fmt.Println("from", next.Value.Node)
		next.Value.Node = "n9"
		return store.Header(&next), nil
	}
	moved, err := writer.GuaranteedUpdate(ctx, "default/web-2", move, backend.UpdateOptions{})
	must(err)
	fmt.Println("to", store.As[engine.Object[Pod]](moved).Value.Node)
	must(pods.Close())
	_, err = writer.GuaranteedUpdate(ctx, "default/web-2", move, backend.UpdateOptions{})
	fmt.Println(err)
	// Output:
	// from n2
	// to n9
	// engine closed
}

// A backend below an engine need not make an object that the cache has already.
func ExampleCachedOf() {
	ctx := context.Background()
	pods, err := engine.New(engine.Config[Pod]{Key: func(p Pod) string { return p.Namespace + "/" + p.Name }})
	must(err)
	defer pods.Close()
	cached := engine.CachedOf(pods)
	fmt.Println(cached("default/web") == nil)

	web, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web"})
	must(err)
	must(pods.WaitForRevision(ctx, web.Revision))
	fmt.Println(cached("default/web").Revision == web.Revision)
	// Output:
	// true
	// true
}
