package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// The metrics of W22.
const (
	// BytesPerWrite is the number of bytes that the process writes to files, of any
	// kind, for each write.
	BytesPerWrite = "bytes per write"
	// OverUpdates is the rate as a multiple of that of the same writers when each write
	// is a transaction of its own, of the library beneath.
	OverUpdates = "of a transaction each"
)

// durable is W22: writes that are on disk when they return. The floor is the library
// beneath ours, which commits the same values, all that wait when a batch begins.
func durable() []Workload {
	var all []Workload
	for _, size := range []struct {
		writers, events int
		floor           float64
		goals           []Goal
	}{
		{1, 1000, 1 / 0.9, []Goal{atMost(P50, 2)}},
		{8, 4000, 1 / 0.9, []Goal{{Metric: OverUpdates, Least: true, Bound: 2.5, To: ToOne}}},
		{64, 20_000, 1 / 0.9, []Goal{{Metric: OverUpdates, Least: true, Bound: 10, To: ToOne}}},
		{512, 50_000, 1 / 0.85, []Goal{{Metric: OverUpdates, Least: true, Bound: 30, To: ToOne}, atLeast(Writes, 0.6)}},
	} {
		all = append(all, Workload{
			ID: fmt.Sprint("W22/", size.writers), Text: fmt.Sprintf("%d writers update objects of 256 bytes in a file", size.writers),
			Full:  Params{Writers: size.writers, Events: size.events},
			Small: Params{Writers: size.writers, Events: max(20, size.writers)},
			Goals: append([]Goal{nearFloor(Writes, size.floor)}, size.goals...),
			Run:   runDurable, Floor: durableFloor, Able: onDisk,
		})
	}
	return all
}

// runDurable measures a system, and then the library beneath ours with a transaction for
// each write, with fewer writes.
func runDurable(ctx context.Context, c Contender, p Params) (Result, error) {
	return run(ctx, c, inFolder(c.Durable), func(ctx context.Context, s *folder[Durable]) (Result, error) {
		result, err := p.writeAll(ctx, s.storage)
		if err != nil {
			return nil, err
		}
		few := p
		few.Events = min(p.Events, max(p.Writers, p.Events/20))
		each, err := onSystem(ctx, inFolder(newBareFile), func(ctx context.Context, s *folder[*bareFile]) (Result, error) {
			return few.writeAll(ctx, s.storage)
		})
		if err != nil {
			return nil, err
		}
		return append(result, Metric{Name: OverUpdates, Unit: "×", Value: result[0].Value / each[0].Value, Higher: true}), nil
	})
}

func durableFloor(ctx context.Context, p Params) (Result, error) {
	return onSystem(ctx, inFolder(openBatches), func(ctx context.Context, s *folder[*bareFile]) (Result, error) {
		return p.writeAll(ctx, s.storage)
	})
}

// writeAll makes Events writes by Writers concurrent writers, each to an object of its own.
func (p Params) writeAll(ctx context.Context, s Durable) (Result, error) {
	var mu sync.Mutex // guards took
	took := newLatency()
	failed := make([]error, p.Writers)
	var left atomic.Int64
	left.Store(int64(p.Events))
	before, known := bytesWritten()
	begin := time.Now()
	var writers sync.WaitGroup
	for i := range p.Writers {
		writers.Go(func() {
			object, write := Object{Name: fmt.Sprint("pod-", i), App: padding}, s.Writer()
			for failed[i] == nil && left.Add(-1) >= 0 {
				object.Seq++
				start := time.Now()
				failed[i] = write(ctx, object)
				ns := time.Since(start).Nanoseconds()
				mu.Lock()
				took.add(ns)
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	result := Result{rate(Writes, int64(p.Events), time.Since(begin))}
	result = append(result, took.metrics()...)
	if after, _ := bytesWritten(); known {
		result = append(result, Metric{Name: BytesPerWrite, Unit: " B", Value: float64(after-before) / float64(p.Events)})
	}
	return result, errors.Join(failed...)
}

// padding makes an object 256 bytes of JSON.
var padding = strings.Repeat("x", 210)

// bytesWritten returns how many bytes the process has written to files, and whether
// the operating system reports that.
func bytesWritten() (n int64, known bool) {
	counters, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(counters)) {
		if _, err := fmt.Sscanf(line, "wchar: %d", &n); err == nil {
			return n, true
		}
	}
	return 0, false
}

// folder is storage with the directory that it is in, which is removed with it.
type folder[S io.Closer] struct {
	storage S
	dir     string
}

// inFolder returns a function that opens storage in a directory of its own.
func inFolder[S io.Closer](open func(ctx context.Context, dir string) (S, error)) func(context.Context) (*folder[S], error) {
	return func(ctx context.Context) (*folder[S], error) {
		dir, err := os.MkdirTemp("", "watchmill-bench-*")
		if err != nil {
			return nil, err
		}
		storage, err := open(ctx, dir)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		return &folder[S]{storage, dir}, nil
	}
}

// Close removes the directory.
func (f *folder[S]) Close() error { return errors.Join(f.storage.Close(), os.RemoveAll(f.dir)) }

// objectFile is a file in which watchmill's backend stores objects.
type objectFile struct {
	*bolt.Backend
	file   *bolt.File
	schema store.Schema
}

func openFile(ctx context.Context, dir string) (Durable, error) { return newObjectFile(ctx, dir) }

func newObjectFile(_ context.Context, dir string) (*objectFile, error) {
	cfg := config()
	f := &objectFile{schema: cfg.Schema()}
	var err error
	if f.file, err = bolt.Open(filepath.Join(dir, "state.db"), bolt.Options{}); err != nil {
		return nil, err
	}
	f.Backend, err = bolt.New(f.file, "objects", bolt.Config{Schema: f.schema, FirstRevision: 1})
	if err != nil {
		return nil, errors.Join(err, f.file.Close())
	}
	return f, nil
}

// Close closes the file.
func (f *objectFile) Close() error { return f.file.Close() }

// Writer returns a function that writes an object that no other writer writes.
func (f *objectFile) Writer() func(context.Context, Object) error {
	return writerOf(f.Backend, f.schema)
}

// writerOf returns a function that writes an object to a backend, over what it has written
// before.
func writerOf(b backend.Backend, schema store.Schema) func(context.Context, Object) error {
	var prev *store.Object
	return func(ctx context.Context, o Object) (err error) {
		draft := schema.New()
		*schema.Pointer(draft).(*Object) = o
		draft.Key = o.Key()
		if err := backend.Describe(&schema, draft); err != nil {
			return err
		}
		prev, err = b.Put(ctx, draft, prev, backend.PutOptions{})
		return err
	}
}
