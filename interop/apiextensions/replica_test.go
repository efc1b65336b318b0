package apiextensions

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
)

// replicated is an object of a kind that a replica knows by its name alone.
type replicated = unstructured.Unstructured

// newReplica follows the widgets of a server, and passes writes on to it. Each of its connections
// lasts for a second or little more.
func newReplica(t *testing.T, of *server) *registry.Store[replicated] {
	t.Helper()
	cfg := registry.Config[replicated]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Status: true}}
	format, err := registry.FormatOf(cfg)
	require.NoError(t, err)
	there, err := remote.New(format, remote.Config{
		URL: of.url, Token: of.token, Client: of.client, WatchTimeout: time.Second, MinPause: time.Millisecond, MaxPause: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	cfg.Engine.Backend = there
	replica, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, replica.Close())
		require.NoError(t, there.Close())
	})
	return replica
}

// writeAtRandom sends one write, to the replica or to its origin. Many are refused, such as that of
// an object that is not there.
func writeAtRandom(t *testing.T, r *rand.Rand, replica *registry.Store[replicated], origin *server) {
	t.Helper()
	name, size := fmt.Sprint("w", r.IntN(5)), int64(r.IntN(100))
	set := func(of *replicated) {
		require.NoError(t, unstructured.SetNestedField(of.Object, size, "spec", "size"))
		of.SetFinalizers([][]string{nil, {"example.com/wait"}}[r.IntN(2)])
	}
	switch r.IntN(4) {
	case 0:
		made := replicated{Object: map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}}}
		set(&made)
		_, _ = replica.Create(t.Context(), made, registry.WriteOptions{})
	case 1:
		_, _, _ = replica.Update(t.Context(), "default/"+name, func(old *engine.Object[replicated]) (replicated, error) {
			next := *old.Value.DeepCopy()
			set(&next)
			return next, nil
		}, registry.WriteOptions{})
	case 2:
		_, _, _ = replica.Delete(t.Context(), "default/"+name, registry.DeleteOptions{})
	case 3:
		_, err := origin.ask(t.Context(), request{
			method: http.MethodPatch, path: "/apis/example.com/v1/namespaces/default/widgets/" + name,
			body: fmt.Sprintf(`{"spec":{"size":%d}}`, size), headers: http.Header{"Content-Type": {"application/merge-patch+json"}},
		})
		require.NoError(t, err)
	}
}

// Package remote says that its origin may be any server of the protocol. A replica of Kubernetes'
// own has its objects with their revisions, and its watches each change, over connections that end.
func TestReplica_HasWhatKubernetesOwnServerHas(t *testing.T) {
	origin := newOriginal(t)
	replica := newReplica(t, origin)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	w, err := replica.Engine().Watch(ctx, engine.WatchOptions{InitialState: true})
	require.NoError(t, err)
	defer w.Stop()
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		writeAtRandom(t, r, replica, origin)
	}

	list, err := origin.ask(t.Context(), request{method: http.MethodGet, path: "/apis/example.com/v1/widgets"})
	require.NoError(t, err)
	want := map[string]string{}
	for _, item := range list.values[0].(map[string]any)["items"].([]any) {
		of := replicated{Object: item.(map[string]any)}
		want["default/"+of.GetName()] = fmt.Sprint(of.GetResourceVersion(), " ", of.GetUID(), " ", of.Object["spec"])
	}
	require.NotEmpty(t, want)
	shown := func(o *engine.Object[replicated]) string {
		return fmt.Sprint(o.Revision, " ", o.Value.GetUID(), " ", o.Value.Object["spec"])
	}
	newest, err := replica.Engine().List(t.Context(), engine.ListOptions{Read: engine.Latest()})
	require.NoError(t, err)
	has := map[string]string{}
	for _, o := range newest.Items {
		has[o.Key] = shown(o)
	}
	require.Equal(t, want, has)

	seen := map[string]string{}
	for !maps.Equal(want, seen) {
		events, err := w.Next(ctx)
		require.NoError(t, err)
		for _, ev := range events {
			if ev.Type == engine.Deleted {
				delete(seen, ev.Object.Key)
			} else {
				seen[ev.Object.Key] = shown(ev.Object)
			}
		}
	}
}
