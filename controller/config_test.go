package controller_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// The zero value of an interface has no type.
func TestNew_NamesWhatItMakesAfterTheTypeBeItAnInterface(t *testing.T) {
	requireNames(t, engine.Config[Pod]{Key: func(p Pod) string { return p.Name }}, "controller_test.Pod")
	requireNames(t, engine.Config[*Pod]{Key: func(p *Pod) string { return p.Name }}, "*controller_test.Pod")
	requireNames(t, engine.Config[fmt.Stringer]{Key: fmt.Stringer.String}, "fmt.Stringer")
}

// requireNames demands that an engine and its clients have the name if they are given none.
func requireNames[T any](t *testing.T, cfg engine.Config[T], name string) {
	objects, err := engine.New(cfg)
	require.NoError(t, err)
	require.Equal(t, name, objects.Host().Engines()[0].Name())
	mirror, err := informer.New(informer.Config[T]{Source: objects.Source(), Host: objects.Host()})
	require.NoError(t, err)
	require.Equal(t, name, mirror.Name())
	c, err := controller.New(controller.Config[T]{
		Informer: mirror,
		Reconcile: func(context.Context, string, *engine.Object[T]) (controller.Result, error) {
			return controller.Result{}, nil
		},
	})
	require.NoError(t, err)
	require.Equal(t, name, c.Name())
	require.NoError(t, c.Close())
	require.NoError(t, mirror.Close())

	cache, err := objectcache.New(objectcache.Config[T]{Source: objects.Source()})
	require.NoError(t, err)
	require.Equal(t, []string{name}, cache.Host().ActorNames())
	require.NoError(t, cache.Close())
	require.NoError(t, objects.Close())
}
