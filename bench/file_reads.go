package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	inmemory "github.com/watchmill/watchmill/store/backend/memory"
)

// Allocations is the metric of how often a read allocates memory.
const Allocations = "allocations/read"

// fileReads is W23: reads of the backend that keeps objects in a file. It has the newest
// events in memory too, and the history that is read is short enough for that. The floor
// is the backend in memory, with the same objects and reads.
func fileReads() []Workload {
	small := Params{Objects: 50, Events: 2 * readStretches}
	var all []Workload
	for _, kind := range []struct {
		id, text string
		events   int
		goals    []Goal
		read     func(Params) backendRead
	}{
		{"get", "get one of 10,000 objects that are in a file", 500_000, []Goal{mustBeZero(Allocations)}, getFrom},
		{"list", "list 10,000 objects that are in a file", 5000, nil, listFrom},
		{"watch", "read a history of 10,000 events of a backend whose objects are also in a file", 5000, nil, watchFrom},
	} {
		all = append(all, Workload{
			ID: "W23/" + kind.id, Text: kind.text, Full: Params{Objects: 10_000, Events: kind.events}, Small: small,
			Goals: append([]Goal{nearFloor(Reads, 1.05)}, kind.goals...),
			Run: func(ctx context.Context, c Contender, p Params) (Result, error) {
				return run(ctx, c, inFolder(newObjectFile), func(ctx context.Context, f *folder[*objectFile]) (Result, error) {
					return p.readBackend(ctx, f.storage, f.storage.schema, kind.read(p))
				})
			},
			Floor: func(ctx context.Context, p Params) (Result, error) {
				cfg := config()
				schema := cfg.Schema()
				open := func(context.Context) (*inmemory.Backend, error) {
					return inmemory.New(schema, inmemory.Options{FirstRevision: 1})
				}
				return onSystem(ctx, open, func(ctx context.Context, b *inmemory.Backend) (Result, error) {
					return p.readBackend(ctx, b, schema, kind.read(p))
				})
			},
			Able: onlyOurs,
		})
	}
	return all
}

// backendRead makes the i-th read of a backend.
type backendRead func(ctx context.Context, b backend.Backend, i int) error

func getFrom(p Params) backendRead {
	object := objects(p.Objects)
	keys := make([]string, p.Objects)
	for i := range keys {
		keys[i] = object(i).Key()
	}
	return func(ctx context.Context, b backend.Backend, i int) error {
		_, err := b.Get(ctx, keys[i%len(keys)])
		return err
	}
}

func listFrom(p Params) backendRead {
	return func(ctx context.Context, b backend.Backend, _ int) error {
		l, err := b.List(ctx, backend.ListOptions{})
		if err == nil && len(l.Items) != p.Objects {
			err = fmt.Errorf("list has %d objects instead of %d", len(l.Items), p.Objects)
		}
		return err
	}
}

func watchFrom(p Params) backendRead {
	return func(ctx context.Context, b backend.Backend, _ int) error {
		w, err := b.Watch(ctx, backend.WatchOptions{From: 1, Notify: func() {}})
		if err != nil {
			return err
		}
		defer w.Close()
		for read := 0; read < p.Objects; {
			batch, err := w.Next(p.Objects)
			if err != nil {
				return err
			}
			if len(batch.Events) == 0 {
				return fmt.Errorf("watch has %d events instead of %d", read, p.Objects)
			}
			read += len(batch.Events)
		}
		return nil
	}
}

// fillWriters is how many goroutines fill a backend: a file shares a commit among those
// that write at the same time.
const fillWriters = 256

// readStretches is how many parts the reads have. The fastest counts, which other programs
// have disturbed least: the bound is close.
const readStretches = 20

// otherMemory is the memory, in bytes, of the rest of the program. With the backend alone the collector would
// run after every hundred lists, and how it falls into the stretches would decide, not the reads.
const otherMemory = 128 << 20

// readBackend fills a backend and measures p.Events reads.
func (p Params) readBackend(ctx context.Context, b backend.Backend, schema store.Schema, read backendRead) (Result, error) {
	if err := p.fillBackend(ctx, b, schema); err != nil {
		return nil, err
	}
	each := p.Events / readStretches
	if err := readStretch(ctx, b, each, read); err != nil { // the first read makes a view
		return nil, err
	}
	rest := make([]byte, otherMemory)
	defer runtime.KeepAlive(rest)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fastest := time.Duration(0)
	for range readStretches {
		begin := time.Now()
		if err := readStretch(ctx, b, each, read); err != nil {
			return nil, err
		}
		if took := time.Since(begin); fastest == 0 || took < fastest {
			fastest = took
		}
	}
	runtime.ReadMemStats(&after)
	allocations := (after.Mallocs - before.Mallocs) / uint64(each*readStretches)
	return Result{rate(Reads, int64(each), fastest), {Name: Allocations, Value: float64(allocations)}}, nil
}

func readStretch(ctx context.Context, b backend.Backend, n int, read backendRead) error {
	for i := range n {
		if err := read(ctx, b, i); err != nil {
			return err
		}
	}
	return nil
}

// fillBackend writes p.Objects objects.
func (p Params) fillBackend(ctx context.Context, b backend.Backend, schema store.Schema) error {
	object := objects(p.Objects)
	return concurrently(fillWriters, p.Objects, func(i int) error { return writerOf(b, schema)(ctx, object(i)) })
}
