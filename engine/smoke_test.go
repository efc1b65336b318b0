package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
)

type pod struct {
	Name string
	App  string
	N    int
}

func cfg() engine.Config[pod] {
	return engine.Config[pod]{
		Key:    func(p pod) string { return p.Name },
		Labels: func(p pod) labels.Set { return labels.Set{"app": p.App} },
	}
}

func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	e, err := engine.New(cfg())
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	rev, err := e.Create(ctx, pod{Name: "a", App: "web"})
	require.NoError(t, err)
	w, err := e.Watch(ctx, engine.WatchOptions{From: rev})
	require.NoError(t, err)
	w2, err := e.Watch(ctx, engine.WatchOptions{InitialState: true, Bookmarks: true, Labels: "app=web"})
	require.NoError(t, err)
	for i := range 5 {
		_, err = e.Put(ctx, pod{Name: "b", App: "web", N: i})
		require.NoError(t, err)
		_, err = e.Put(ctx, pod{Name: "c", App: "db", N: i})
		require.NoError(t, err)
	}
	n := 0
	for ev, err := range w.Events() {
		require.NoError(t, err)
		t.Log(ev)
		if n++; n == 10 {
			break
		}
	}
	n = 0
	for ev, err := range w2.Events() {
		require.NoError(t, err)
		t.Log(ev)
		if n++; n == 7 {
			break
		}
	}
	l, err := e.List(ctx, engine.ListOptions{})
	require.NoError(t, err)
	t.Log(l.Revision, len(l.Items))
}
