package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/caughtup"
)

// NodeField and AppLabel are the names in selectors.
const (
	NodeField = "spec.nodeName"
	AppLabel  = "app"
)

// Watchmill is this module's engine, used as its documentation recommends for
// these workloads: defaults everywhere, one index, and handlers that never block
// on the engine's own workers.
func Watchmill() Contender {
	return Contender{
		Name: "watchmill", Store: openEngine, Windowed: openWindowed, Bare: bareObjects, Fed: openFed, Server: openServer, Custom: openCustom,
		Bus: openTopic, Durable: openFile, Informer: openInformer, FedInformer: openFedInformer,
	}
}

// config returns the configuration of all engines in this package.
func config() engine.Config[Object] {
	return engine.Config[Object]{
		Name:        "bench",
		Key:         Object.Key,
		LabelValues: engine.LabelValues[Object]{AppLabel: func(o Object) string { return o.App }},
		Fields:      engine.Fields[Object]{NodeField: func(o Object) string { return o.Node }},
		Equal:       func(a, b Object) bool { return a == b },
		Index:       []string{NodeField},
	}
}

// engineStore adapts an engine to Store.
type engineStore struct {
	*engine.Engine[Object]
}

func openEngine(ctx context.Context) (Store, error) { return openWindowed(ctx, 0) }

// openWindowed opens an engine whose window has at most that number of events; zero means
// the default.
func openWindowed(ctx context.Context, events int) (Store, error) {
	cfg := config()
	cfg.Window.MaxEvents = events
	e, err := engine.New(cfg)
	if err != nil {
		return nil, err
	}
	return engineStore{e}, e.WaitReady(ctx)
}

// bareObjects makes only the values, whose strings belong to the writer. Everything else
// counts as the engine's: labels, fields, and the backend with its own history.
func bareObjects(live, superseded int) any {
	all := make([]*Object, live+superseded)
	for i := range all {
		all[i] = &Object{Seq: int64(i)}
	}
	return all
}

func (s engineStore) Write(ctx context.Context, o Object) (uint64, error) {
	stored, err := s.Put(ctx, o)
	if err != nil {
		return 0, err
	}
	return uint64(stored.Revision), nil
}

func (s engineStore) Watch(ctx context.Context, what Selection, from uint64, handle func(seq int64)) (Watch, error) {
	opts := engine.WatchOptions{From: engine.Revision(from), OnPool: handle != nil}
	opts.Fields, opts.Labels = what.selectors()
	if handle == nil {
		w, err := s.Engine.Watch(ctx, opts)
		return engineWatch{w}, err
	}
	w, err := s.Handle(ctx, opts, func(ev engine.Event[Object]) { handle(ev.Object.Value.Seq) })
	return engineWatch{w}, err
}

func (s engineStore) List(ctx context.Context, what Selection) (int, error) {
	opts := engine.ListOptions{Read: engine.Cached()}
	opts.Fields, opts.Labels = what.selectors()
	list, err := s.Engine.List(ctx, opts)
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

func (s engineStore) Get(ctx context.Context, key string) (Object, error) {
	o, err := s.Engine.Get(ctx, key, engine.GetOptions{Read: engine.Cached()})
	if err != nil {
		return Object{}, err
	}
	return o.Value, nil
}

// settlePeriod is the time between two polls of Settle.
const settlePeriod = 100 * time.Microsecond

func (s engineStore) Settle(ctx context.Context) error {
	for s.Stats().Watches > 0 {
		if err := pause(ctx, settlePeriod); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s engineStore) WaitFor(ctx context.Context, rev uint64) error {
	return caughtup.Wait(ctx, s.Engine, engine.Revision(rev))
}

// selectors returns the selection as field and label selectors.
func (s Selection) selectors() (field, label string) {
	if s.Node != "" {
		field = NodeField + "=" + s.Node
	}
	if s.App != "" {
		label = AppLabel + "=" + s.App
	}
	return field, label
}

// engineWatch adapts an engine's watch to Watch.
type engineWatch struct{ *engine.Watch[Object] }

func (w engineWatch) Drain(ctx context.Context, n int) int {
	return drain(ctx, n, w.Next)
}

// drain counts the events in the batches of next, until there are n or next returns an
// error.
func drain[E any](ctx context.Context, n int, next func(context.Context) ([]E, error)) int {
	got := 0
	for got < n {
		batch, err := next(ctx)
		if err != nil {
			break
		}
		got += len(batch)
	}
	return got
}

// Pages implements [StateStore].
func (s engineStore) Pages(ctx context.Context, size int) (int, error) {
	opts, n := engine.ListOptions{Limit: size}, 0
	for {
		list, err := s.Engine.List(ctx, opts)
		if err != nil {
			return n, err
		}
		if len(list.Items) > size {
			return n, fmt.Errorf("a page has %d objects, and %d were asked for", len(list.Items), size)
		}
		n += len(list.Items)
		if list.Continue == "" {
			return n, nil
		}
		opts.Continue = list.Continue
	}
}

// WatchState implements [StateStore].
func (s engineStore) WatchState(ctx context.Context, handle func(seq int64)) (Watch, error) {
	opts := engine.WatchOptions{InitialState: true, OnPool: true}
	w, err := s.Handle(ctx, opts, func(ev engine.Event[Object]) { handle(ev.Object.Value.Seq) })
	return engineWatch{w}, err
}
