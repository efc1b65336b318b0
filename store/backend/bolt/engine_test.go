package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/window"
)

type pod struct {
	Name, Node string
	Restarts   int
}

// podsConfig is the configuration of an engine of pods.
func podsConfig() engine.Config[pod] {
	return engine.Config[pod]{
		FreshnessTimeout: time.Minute, // a machine may be slow

		Key:    func(p pod) string { return p.Name },
		Fields: engine.Fields[pod]{"spec.nodeName": func(p pod) string { return p.Node }},
	}
}

// openEngine opens an engine over a file, and returns what closes both.
func openEngine(path string) (*engine.Engine[pod], func() error, error) {
	cfg := podsConfig()
	f, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return nil, nil, err
	}
	schema := cfg.Schema()
	pods, err := bolt.New(f, "pods", bolt.Config{Schema: schema})
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	cfg.Backend = pods
	e, err := engine.New(cfg)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return e, func() error { return errors.Join(e.Close(), f.Close()) }, nil
}

// An engine finds its objects after a restart, with their revisions.
func TestEngine_SurvivesItsRestart(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "state.db")
	e, stop, err := openEngine(path)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := e.Create(ctx, pod{Name: fmt.Sprint("p", i), Node: fmt.Sprint("n", i%3)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	before, err := e.List(ctx, engine.ListOptions{Fields: "spec.nodeName=n1"})
	require.NoError(t, err)
	require.NoError(t, stop())

	e, stop, err = openEngine(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, stop()) }()
	after, err := e.List(ctx, engine.ListOptions{Fields: "spec.nodeName=n1"})
	require.NoError(t, err)
	require.Len(t, after.Items, len(before.Items))
	for i, o := range after.Items {
		require.Equal(t, before.Items[i].Value, o.Value)
		require.Equal(t, before.Items[i].Revision, o.Revision)
	}
}

// A consumer goes on after a restart where its checkpoint says, through what was
// written since, into what is written now. A checkpoint of another file is refused.
func TestEngine_ResumesFromBeforeItsRestart(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	path := filepath.Join(dir, "state.db")
	e, stop, err := openEngine(path)
	require.NoError(t, err)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	for i := range 30 {
		_, err := e.Put(ctx, pod{Name: fmt.Sprint("p", i%7), Restarts: i})
		require.NoError(t, err)
	}
	var seen []string
	for ev, err := range w.Events() {
		require.NoError(t, err)
		if seen = append(seen, ev.String()); len(seen) == 12 {
			break
		}
	}
	saved, err := e.Checkpoint(ctx, w.Revision())
	require.NoError(t, err)
	require.NoError(t, stop())

	e, stop, err = openEngine(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, stop()) }()
	from, err := e.RevisionOf(ctx, saved)
	require.NoError(t, err)
	w, err = e.Watch(ctx, engine.WatchOptions{From: from})
	require.NoError(t, err)
	live, err := e.Put(ctx, pod{Name: "live"})
	require.NoError(t, err)
	var rest []int
	for ev, err := range w.Events() {
		require.NoError(t, err)
		if ev.Revision == live.Revision {
			break
		}
		rest = append(rest, ev.Object.Value.Restarts)
	}
	require.Len(t, rest, 18)
	require.Equal(t, 12, rest[0])
	require.Equal(t, 29, rest[17])

	other, stopOther, err := openEngine(filepath.Join(dir, "other.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, stopOther()) }()
	_, err = other.RevisionOf(ctx, saved)
	require.ErrorIs(t, err, engine.ErrForeignCheckpoint)
}

// Engines of two types share the transactions, the space and the upkeep of a file. One that is
// closed, and opened again, neither delays the other nor loses what its watches have yet to see.
func TestEngine_SharesItsFileWithAnother(t *testing.T) {
	f, err := bolt.Open(filepath.Join(t.TempDir(), "state.db"), bolt.Options{})
	require.NoError(t, err)
	open := func(name string) (e *engine.Engine[pod], stop func() error) {
		cfg := podsConfig()
		b, err := bolt.New(f, name, bolt.Config{Schema: cfg.Schema(), FirstRevision: 1, Retain: window.Limits{MinEvents: 300, MaxEvents: 400}})
		require.NoError(t, err)
		cfg.Backend = b
		e, err = engine.New(cfg)
		require.NoError(t, err)
		return e, func() error { return errors.Join(e.Close(), b.Close()) }
	}
	const rounds, writers, each = 4, 3, 60
	write := func(e *engine.Engine[pod], round int, done *sync.WaitGroup) {
		for n := range writers {
			done.Go(func() {
				for i := range each {
					if _, err := e.Put(t.Context(), pod{Name: fmt.Sprint("p", n), Restarts: round*each + i + 1}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	// requireRound requires the events of a round after a revision, and returns that of the last.
	requireRound := func(e *engine.Engine[pod], from engine.Revision) engine.Revision {
		w, err := e.Watch(t.Context(), engine.WatchOptions{From: from})
		require.NoError(t, err)
		defer w.Stop()
		end := from + writers*each
		for ev, err := range w.Events() {
			require.NoError(t, err)
			from++
			require.Equal(t, from, ev.Revision)
			if from == end {
				break
			}
		}
		return from
	}
	first, stopFirst := open("first")
	second, stopSecond := open("second")
	seen := [2]engine.Revision{1, 1}
	for round := range rounds {
		var one, other sync.WaitGroup
		write(first, round, &one)
		write(second, round, &other)
		other.Wait()
		require.NoError(t, stopSecond()) // while the first goes on
		second, stopSecond = open("second")
		seen[1] = requireRound(second, seen[1])
		one.Wait()
		seen[0] = requireRound(first, seen[0])
	}
	f.Settle()
	info, err := f.Info()
	require.NoError(t, err)
	for name, at := range map[string]engine.Revision{"first": seen[0], "second": seen[1]} {
		require.Equal(t, at, info.Types[name].Revision)
		require.Positive(t, info.Types[name].Compacted, "history was discarded")
	}
	require.NoError(t, f.Close())
	for _, e := range []*engine.Engine[pod]{first, second} {
		_, err := e.Put(t.Context(), pod{Name: "late"})
		require.ErrorIs(t, err, store.ErrClosed)
	}
	require.NoError(t, errors.Join(stopFirst(), stopSecond()))
}
