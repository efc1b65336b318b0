package controller_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/cache"
	"github.com/watchmill/watchmill/usercode"
)

// Reconcile reads the informer, which is ahead of Keys. It may act on an object that is gone
// before Keys hears of it.
func TestKeys_GetsEveryChangeHoweverFarItIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := enginetest.NewSourceWith(podConfig(), enginetest.SourceOptions{Blocks: true})
		pods, err := informer.New(informer.Config[Pod]{
			Source:   engine.SourceOf[Pod](source),
			Indexers: cache.Indexers[Pod]{"node": func(p Pod) ([]string, error) { return []string{p.Node}, nil }},
		})
		require.NoError(t, err)
		release := make(chan struct{})
		var mu sync.Mutex
		seen := map[string]int{} // pods, by node
		c, err := controller.New(controller.Config[Pod]{
			Informer: pods,
			Keys: func(n informer.Notification[Pod]) []string {
				<-release
				return []string{n.Object.Value.Node}
			},
			Reconcile: func(_ context.Context, node string, _ *engine.Object[Pod]) (controller.Result, error) {
				on, err := pods.ByIndex("node", node)
				mu.Lock()
				defer mu.Unlock()
				seen[node] = len(on)
				return controller.Result{}, err
			},
		})
		require.NoError(t, err)
		on := func(node string) int {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return seen[node]
		}
		read := func(rev engine.Revision, err error) engine.Revision {
			require.NoError(t, err)
			require.NoError(t, pods.WaitForRevision(t.Context(), rev))
			return rev
		}

		read(source.Add(Pod{Namespace: "ns", Name: "busy", Node: "n1"}))
		for n := range 20 { // in parts, since the source keeps a bounded history
			var last engine.Revision
			for m := range 1000 {
				last, err = source.Modify(Pod{Namespace: "ns", Name: "busy", Node: "n1", Phase: fmt.Sprint(n, m)})
				require.NoError(t, err)
			}
			read(last, nil)
		}
		require.Greater(t, c.Stats().Lag, informer.DefaultBuffer)
		read(source.Add(Pod{Namespace: "ns", Name: "short", Node: "n2"}))
		require.NoError(t, c.Enqueue("n2"))
		require.Equal(t, 1, on("n2"))
		last := read(source.Delete("ns/short"))
		require.Equal(t, 1, on("n2"))

		close(release)
		require.NoError(t, c.Settle(t.Context(), last))
		require.Zero(t, on("n2"))
		require.NoError(t, c.Close())
		require.NoError(t, pods.Close())
		require.NoError(t, source.Close())
	})
}

// The informer goes on, and tells the controller of no more changes.
func TestController_SaysThatItsKeysFunctionHasEndedTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, err := engine.New(podConfig())
		require.NoError(t, err)
		c, err := controller.New(controller.Config[Pod]{
			Source: pods.Source(), Host: pods.Host(),
			Keys: func(informer.Notification[Pod]) []string {
				runtime.Goexit()
				return nil
			},
			Reconcile: func(context.Context, string, *engine.Object[Pod]) (controller.Result, error) {
				return controller.Result{}, nil
			},
		})
		require.NoError(t, err)
		require.NoError(t, c.Err())
		pod, err := pods.Create(t.Context(), Pod{Namespace: "ns", Name: "a"})
		require.NoError(t, err)
		require.ErrorIs(t, c.Settle(t.Context(), pod.Revision), usercode.ErrGoexit, "it has not seen the change")
		<-c.Done()
		require.ErrorIs(t, c.Err(), informer.ErrHandlerPanic)
		require.ErrorIs(t, c.Err(), usercode.ErrGoexit)
		require.Equal(t, c.Err(), c.Settle(t.Context(), 0))
		require.NoError(t, c.Close())
		require.ErrorIs(t, c.Err(), controller.ErrClosed)
		require.NoError(t, pods.Close())
	})
}

// Keys maps a change to other objects, over an informer that is shared and goes on.
func TestController_KeysOfASharedInformer(t *testing.T) {
	pods, err := engine.New(podConfig())
	require.NoError(t, err)
	shared, err := informer.New(informer.Config[Pod]{Source: pods.Source(), Host: pods.Host()})
	require.NoError(t, err)
	var mu sync.Mutex
	nodes := map[string]bool{}
	c, err := controller.New(controller.Config[Pod]{
		Informer: shared, Workers: 3,
		Keys: func(n informer.Notification[Pod]) []string { return []string{n.Object.Value.Node} },
		Reconcile: func(_ context.Context, key string, _ *engine.Object[Pod]) (controller.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			nodes[key] = true
			return controller.Result{}, nil
		},
	})
	require.NoError(t, err)
	var last engine.Revision
	for n := range 20 {
		o, err := pods.Create(t.Context(), Pod{Namespace: "ns", Name: fmt.Sprint(n), Node: fmt.Sprint("n", n%4)})
		require.NoError(t, err)
		last = o.Revision
	}
	require.NoError(t, c.Settle(t.Context(), last))
	mu.Lock()
	require.Equal(t, map[string]bool{"n0": true, "n1": true, "n2": true, "n3": true}, nodes)
	mu.Unlock()
	require.NoError(t, c.Close())
	require.NoError(t, shared.Err(), "it was not the controller's")
	require.NoError(t, shared.Close())
	require.NoError(t, pods.Close())
}
