package apiextensions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/registry/crd/cel"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
)

// replicated is an object of a kind that a replica knows by its name alone.
type replicated = unstructured.Unstructured

// follow returns the objects of a kind at a server. Each connection of a watch lasts for a second or
// little more.
func follow(t *testing.T, of *server, cfg registry.Config[replicated]) *registry.Store[replicated] {
	t.Helper()
	format, err := registry.FormatOf(cfg)
	require.NoError(t, err)
	there, err := remote.New(format, remote.Config{
		URL: of.url, Token: of.token, Client: of.client, KeepManagedFields: true,
		WatchTimeout: time.Second, MinPause: time.Millisecond, MaxPause: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	cfg.Engine.Backend = there
	cfg.Engine.FreshnessTimeout = 50 * time.Millisecond // after which a read is passed on; see package remote
	replica, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, replica.Close())
		require.NoError(t, there.Close())
	})
	require.NoError(t, replica.Engine().WaitReady(t.Context()))
	return replica
}

// newReplica follows the widgets of a server, and passes writes on to it.
func newReplica(t *testing.T, of *server) *registry.Store[replicated] {
	t.Helper()
	return follow(t, of, registry.Config[replicated]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Status: true}})
}

// serveReplica serves replicas of all kinds of a server.
func serveReplica(t *testing.T, of *server) *server {
	t.Helper()
	text, err := os.ReadFile(kindsFile)
	require.NoError(t, err)
	kinds, err := crd.Options{Rules: cel.Rules{}}.Parse(bytes.NewReader(text))
	require.NoError(t, err)
	var resources []serve.Provider
	for _, kind := range kinds {
		cfg := kind.Config()
		cfg.Apply = apply.New
		resources = append(resources, follow(t, of, cfg))
	}
	handler, err := serve.New(serve.Config{Resources: resources, Logger: slog.New(slog.DiscardHandler)}) // a refusal with 500 is Kubernetes'
	require.NoError(t, err)
	h := httptest.NewServer(handler)
	t.Cleanup(h.Close)
	return &server{url: h.URL, client: h.Client(), said: map[string]string{}}
}

// What is read and written through a replica is answered as by the server that it follows.
func TestScript_IsAnsweredByAReplicaAsByKubernetes(t *testing.T) {
	t.Parallel()
	s := &script{T: t, pair: &pair{original: newOriginal(t), ours: serveReplica(t, newOriginal(t))}, replica: true}
	for _, part := range []func(*script){creations, schemas, freeFields, jsonPatches, reads, updates, subresources, mergePatches, applies, deletions} {
		part(s)
	}
	require.Empty(t, strings.Join(s.wrong, "\n"))
	require.Greater(t, s.sent, 400)
}

// change is that of an object: its new revision, or "gone".
type change struct{ key, now string }

// acknowledged is what the answers to writes say: what has changed, in order, and how many writes of
// each kind have succeeded.
type acknowledged struct {
	changes []change
	newest  map[string]string // the revisions by key
	writes  map[string]int
}

// note enters the answer to a write, which has the object as it is now, or its last state if that is gone.
func (a *acknowledged) note(verb string, o *replicated, now string, gone bool) {
	a.writes[verb]++
	key := o.GetNamespace() + "/" + o.GetName()
	if gone || o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		now = "gone"
	}
	if a.newest[key] != now {
		a.changes, a.newest[key] = append(a.changes, change{key, now}), now
	}
}

// writeAtRandom sends one write, to the replica or to its origin. Many are refused, such as that of
// an object that is not there.
func writeAtRandom(t *testing.T, r *rand.Rand, replica *registry.Store[replicated], origin *server, answers *acknowledged) {
	t.Helper()
	name, size := fmt.Sprint("w", r.IntN(5)), int64(r.IntN(100))
	set := func(of *replicated) {
		require.NoError(t, unstructured.SetNestedField(of.Object, size, "spec", "size"))
		of.SetFinalizers([][]string{nil, {"example.com/wait"}}[r.IntN(2)])
	}
	note := func(verb string, o *engine.Object[replicated], gone bool, err error) {
		t.Helper()
		if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrExists) {
			return
		}
		require.NoError(t, err, "%s of %s", verb, name)
		answers.note(verb, &o.Value, o.Revision.String(), gone)
	}
	switch r.IntN(4) {
	case 0:
		made := replicated{Object: map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}}}
		set(&made)
		o, err := replica.Create(t.Context(), made, registry.WriteOptions{})
		note("create", o, false, err)
	case 1:
		o, _, err := replica.Update(t.Context(), "default/"+name, func(old *engine.Object[replicated]) (replicated, error) {
			next := *old.Value.DeepCopy()
			set(&next)
			return next, nil
		}, registry.WriteOptions{})
		note("update", o, false, err)
	case 2:
		o, gone, err := replica.Delete(t.Context(), "default/"+name, registry.DeleteOptions{})
		note("delete", o, gone, err)
	case 3:
		a, err := origin.ask(t.Context(), request{
			method: http.MethodPatch, path: "/apis/example.com/v1/namespaces/default/widgets/" + name,
			body: fmt.Sprintf(`{"spec":{"size":%d}}`, size), headers: http.Header{"Content-Type": {"application/merge-patch+json"}},
		})
		require.NoError(t, err)
		if a.code == http.StatusNotFound {
			return
		}
		require.Equal(t, http.StatusOK, a.code, a.text)
		o := replicated{Object: a.values[0].(map[string]any)}
		answers.note("patch", &o, o.GetResourceVersion(), false)
	}
}

// Package remote says that its origin may be any server of the protocol. A replica of Kubernetes'
// own has its objects with their revisions, and its watches each change, over connections that end.
func TestReplica_HasWhatKubernetesOwnServerHas(t *testing.T) {
	t.Parallel()
	origin := newOriginal(t)
	replica := newReplica(t, origin)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	create := func(name string) *engine.Object[replicated] {
		t.Helper()
		o, err := replica.Create(ctx, replicated{Object: map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"size": int64(1)},
		}}, registry.WriteOptions{})
		require.NoError(t, err)
		return o
	}
	first := create("first")
	for err := engine.ErrFuture; err != nil; err = replica.Engine().WaitForRevision(ctx, first.Revision) {
		require.ErrorIs(t, err, engine.ErrFuture) // which it fails with long before a busy machine has passed the write on
	}
	relists := replica.Engine().Stats().Relists // when it started, Kubernetes' server might have, too
	w, err := replica.Engine().Watch(ctx, engine.WatchOptions{From: first.Revision})
	require.NoError(t, err)
	defer w.Stop()
	r := rand.New(rand.NewPCG(1, 2))
	answers := &acknowledged{newest: map[string]string{}, writes: map[string]int{}}
	for range 500 {
		writeAtRandom(t, r, replica, origin, answers)
	}
	for _, verb := range []string{"create", "update", "delete", "patch"} {
		require.Greater(t, answers.writes[verb], 20, verb)
	}
	last := create("last")
	answers.note("create", &last.Value, last.Revision.String(), false)

	list, err := origin.ask(t.Context(), request{method: http.MethodGet, path: "/apis/example.com/v1/widgets"})
	require.NoError(t, err)
	want := map[string]string{}
	for _, item := range list.values[0].(map[string]any)["items"].([]any) {
		of := replicated{Object: item.(map[string]any)}
		want["default/"+of.GetName()] = fmt.Sprint(of.GetResourceVersion(), " ", of.GetUID(), " ", of.Object["spec"])
	}
	require.NotEmpty(t, want)
	newest, err := replica.Engine().List(t.Context(), engine.ListOptions{Read: engine.Latest()})
	require.NoError(t, err)
	has := map[string]string{}
	for _, o := range newest.Items {
		has[o.Key] = fmt.Sprint(o.Revision, " ", o.Value.GetUID(), " ", o.Value.Object["spec"])
	}
	require.Equal(t, want, has)

	var seen []change
	for len(seen) == 0 || seen[len(seen)-1].key != last.Key {
		events, err := w.Next(ctx)
		require.NoError(t, err)
		for _, ev := range events {
			now := ev.Revision.String()
			if ev.Type == engine.Deleted {
				now = "gone"
			}
			seen = append(seen, change{ev.Object.Key, now})
		}
	}
	require.Equal(t, answers.changes, seen)
	require.Equal(t, relists, replica.Engine().Stats().Relists)
}

// Kubernetes numbers the changes of all kinds together, so that a replica of one kind is not told
// that it is complete up to the revision of a list.
func TestReplica_OfKubernetesWhileAnotherKindChanges(t *testing.T) {
	t.Parallel()
	origin := newOriginal(t)
	replica := newReplica(t, origin)
	for _, r := range []request{post(widget("a", "", `{"size":1}`)), send(http.MethodPost, things, "", thing("t", "", ""))} {
		created, err := origin.ask(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, created.code, created.text)
	}
	list, err := replica.Engine().List(t.Context(), engine.ListOptions{Read: engine.Latest()})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Greater(t, list.Revision, list.Items[0].Revision)
	_, err = replica.Engine().Watch(t.Context(), engine.WatchOptions{InitialState: true, Linearizable: true})
	require.ErrorIs(t, err, engine.ErrFuture)
	w, err := replica.Engine().Watch(t.Context(), engine.WatchOptions{InitialState: true})
	require.NoError(t, err)
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "default/a", events[0].Object.Key)
	w.Stop()
}
