package bench_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/caughtup"
)

// BenchmarkLayout runs W1, W5 and W13 over the two ways in which an untyped core
// can hold values of the user's type: the value behind the object's header, as
// engines do, and the value in an interface beside it, which is what an engine of
// type any does. They run in turn, so that a disturbance affects both:
//
//	go test -run '^$' -bench Layout -benchtime 1x -count 7 ./bench
//
// Values follow headers because an interface costs more: W1 has 0.8 of the deliveries, each
// of the 150,000 objects of W13 takes 53 bytes more, 406 instead of 353 beyond its value, and
// a write of a struct costs one more allocation. W5 has as many writes.
func BenchmarkLayout(b *testing.B) {
	workloads, err := bench.Select([]string{"W1", "W5", "W13"})
	require.NoError(b, err)
	for _, w := range workloads {
		for _, layout := range layoutsFor(w) {
			b.Run(w.ID+"/"+layout.Name, func(b *testing.B) {
				p := w.Full
				if testing.Short() {
					p = w.Small
				}
				var result bench.Result
				for range b.N {
					result, err = w.Run(b.Context(), layout, p)
					require.NoError(b, err)
				}
				reportAll(b, result)
			})
		}
	}
}

// Both layouts do the same work.
func TestLayout_BothDoTheWork(t *testing.T) {
	workloads, err := bench.Select([]string{"W1", "W5"})
	require.NoError(t, err)
	for _, w := range workloads {
		for _, layout := range layoutsFor(w) {
			result, err := w.Run(t.Context(), layout, w.Small)
			require.NoError(t, err, layout.Name)
			lost, measured := result.Get(bench.Lost)
			require.True(t, measured, layout.Name)
			require.Zero(t, lost.Value, layout.Name)
		}
	}
}

// layoutsFor returns the layouts that can do a workload.
func layoutsFor(w bench.Workload) []bench.Contender {
	return slices.DeleteFunc([]bench.Contender{bench.Watchmill(), boxed()}, func(c bench.Contender) bool { return !w.Able(c) })
}

// boxed is an engine whose values are in interfaces.
func boxed() bench.Contender {
	return bench.Contender{
		Name:     "boxed",
		Store:    func(ctx context.Context) (bench.Store, error) { return openBoxed(ctx, 0) },
		Windowed: openBoxed,
		Bare:     bench.Watchmill().Bare,
	}
}

// boxedStore implements the methods of [bench.Store] that its workloads call.
type boxedStore struct {
	bench.Store
	engine *engine.Engine[any]
}

func openBoxed(ctx context.Context, events int) (bench.Store, error) {
	object := func(v any) bench.Object { return v.(bench.Object) }
	e, err := engine.New(engine.Config[any]{
		Name:        "boxed",
		Key:         func(v any) string { return object(v).Key() },
		LabelValues: engine.LabelValues[any]{bench.AppLabel: func(v any) string { return object(v).App }},
		Fields:      engine.Fields[any]{bench.NodeField: func(v any) string { return object(v).Node }},
		Equal:       func(a, b any) bool { return a == b },
		Index:       []string{bench.NodeField},
		Window:      engine.Window{MaxEvents: events},
	})
	if err != nil {
		return nil, err
	}
	return boxedStore{engine: e}, e.WaitReady(ctx)
}

func (s boxedStore) Write(ctx context.Context, o bench.Object) (uint64, error) {
	stored, err := s.engine.Put(ctx, o)
	if err != nil {
		return 0, err
	}
	return uint64(stored.Revision), nil
}

func (s boxedStore) Watch(ctx context.Context, what bench.Selection, from uint64, handle func(seq int64)) (bench.Watch, error) {
	opts := engine.WatchOptions{From: engine.Revision(from), OnPool: true}
	if what.Node != "" {
		opts.Fields = bench.NodeField + "=" + what.Node
	}
	w, err := s.engine.Handle(ctx, opts, func(ev engine.Event[any]) { handle(ev.Object.Value.(bench.Object).Seq) })
	return boxedWatch{w}, err
}

func (s boxedStore) WaitFor(ctx context.Context, rev uint64) error {
	return caughtup.Wait(ctx, s.engine, engine.Revision(rev))
}

func (s boxedStore) Settle(context.Context) error { return nil }

func (s boxedStore) Close() error { return s.engine.Close() }

type boxedWatch struct{ *engine.Watch[any] }

// Drain is for watches without a handler, which are not opened.
func (boxedWatch) Drain(context.Context, int) int { return 0 }
