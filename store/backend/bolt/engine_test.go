package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

type pod struct {
	Name, Node string
	Restarts   int
}

// openEngine opens an engine over a file, and returns what closes both.
func openEngine(path string) (*engine.Engine[pod], func() error, error) {
	cfg := engine.Config[pod]{
		Key:    func(p pod) string { return p.Name },
		Fields: engine.Fields[pod]{"spec.nodeName": func(p pod) string { return p.Node }},
	}
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
