package remote_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
)

// Writes at a replica are the origin's to decide on, and the replica's readers see them.
func TestReplica_PassesWritesOn(t *testing.T) {
	origin := newServer(t)
	r := replica(t, origin.url)
	ctx := t.Context()

	o, err := r.store.Create(ctx, widget("a", 0), registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, 7, o.Value.Spec.Size, "the origin's default")
	require.NotEmpty(t, o.Value.UID)
	require.EqualValues(t, 1, origin.validated.Load())
	require.Zero(t, r.validated.Load(), "rules run once, at the origin")

	_, err = r.store.Create(ctx, widget("a", 1), registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrExists)
	_, err = r.store.Create(ctx, widget("bad", -1), registry.WriteOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)

	var warned []string
	grown, created, err := r.store.Update(ctx, "default/a", func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Spec.Size = 5000
		return w, nil
	}, registry.WriteOptions{Warn: func(text string) { warned = append(warned, text) }})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, []string{"this is large"}, warned)
	require.Greater(t, grown.Revision, o.Revision)

	seen, err := r.store.Engine().Get(ctx, "default/a", engine.GetOptions{Read: engine.NotOlderThan(grown.Revision)})
	require.NoError(t, err)
	require.Equal(t, 5000, seen.Value.Spec.Size)

	_, err = r.store.UpdateStatus(ctx, "default/a", func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Spec.Size, w.Status.Phase = 1, "Ready"
		return w, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	there, err := origin.store.Engine().Get(ctx, "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "Ready", there.Value.Status.Phase)
	require.Equal(t, 5000, there.Value.Spec.Size)

	_, err = r.store.Create(ctx, widget("dry", 1), registry.WriteOptions{DryRun: true})
	require.NoError(t, err)
	_, err = origin.store.Engine().Get(ctx, "default/dry", engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)

	gone, really, err := r.store.Delete(ctx, "default/a", registry.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, really)
	require.Equal(t, "Ready", gone.Value.Status.Phase)
	require.Greater(t, gone.Revision, there.Revision)
	_, _, err = r.store.Delete(ctx, "default/a", registry.DeleteOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// Two writers of one object, at two replicas: none overwrites the other unseen.
func TestReplica_WritesOfTwoReplicasAllApply(t *testing.T) {
	origin := newServer(t)
	origin.create("a", 1)
	one, two := replica(t, origin.url), replica(t, origin.url)
	done := make(chan error)
	for _, r := range []*server{one, two} {
		go func() {
			for range 20 {
				_, _, err := r.store.Update(t.Context(), "default/a", func(old *engine.Object[Widget]) (Widget, error) {
					w := old.Value
					w.Spec.Size++
					return w, nil
				}, registry.WriteOptions{})
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	o, err := origin.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, 41, o.Value.Spec.Size)
}

// An object with finalizers is marked at the origin, and goes with the last of them.
func TestReplica_DeletesWithFinalizers(t *testing.T) {
	origin := newServer(t)
	r := replica(t, origin.url)
	w := widget("a", 1)
	w.Finalizers = []string{"example.com/wait"}
	_, err := r.store.Create(t.Context(), w, registry.WriteOptions{})
	require.NoError(t, err)
	marked, gone, err := r.store.Delete(t.Context(), "default/a", registry.DeleteOptions{})
	require.NoError(t, err)
	require.False(t, gone)
	require.NotNil(t, marked.Value.DeletionTimestamp)
	_, _, err = r.store.Update(t.Context(), "default/a", func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Finalizers = nil
		return w, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	_, err = origin.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// The origin tells its garbage collector of the policy, whatever a replica of it is told of collectors.
func TestReplica_PassesThePolicyOfADeletionOn(t *testing.T) {
	for _, atOrigin := range []bool{true, false} {
		origin := newServer(t, func(cfg *registry.Config[Widget]) { cfg.GarbageCollection = atOrigin })
		b := backendAt(t, origin.url)
		r := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend, cfg.GarbageCollection = b, !atOrigin })
		r.create("a", 1)
		o, gone, err := r.store.Delete(t.Context(), "default/a", registry.DeleteOptions{Propagation: metav1.DeletePropagationOrphan})
		require.NoError(t, err)
		require.Equal(t, atOrigin, !gone)
		if gone {
			continue
		}
		require.Equal(t, []string{metav1.FinalizerOrphanDependents}, o.Value.Finalizers)
		_, gone, err = r.store.Delete(t.Context(), "default/a", registry.DeleteOptions{Propagation: metav1.DeletePropagationBackground})
		require.NoError(t, err)
		require.True(t, gone)
	}
}

// A deletion that the origin refuses as a conflict, and not since the object has changed, is
// refused here, too: sending it again would not help.
func TestReplica_DeletionThatAlwaysConflictsEnds(t *testing.T) {
	origin := newServer(t)
	origin.create("a", 1)
	target, err := url.Parse(origin.url)
	require.NoError(t, err)
	pass := httputil.NewSingleHostReverseProxy(target)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var deletions atomic.Int64
	held := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodDelete {
			pass.ServeHTTP(w, r)
			return
		}
		if deletions.Add(1) == 10 {
			cancel()
		}
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","message":"it is held","code":409}`)
	}))
	t.Cleanup(func() {
		held.CloseClientConnections()
		held.Close()
	})
	r := replica(t, held.URL)
	_, _, err = r.store.Delete(ctx, "default/a", registry.DeleteOptions{})
	require.ErrorIs(t, err, engine.ErrConflict)
	require.ErrorContains(t, err, "it is held")
}

// What an origin warns of, it warns of even if it refuses the write.
func TestReplica_PassesOnTheWarningsOfARefusedWrite(t *testing.T) {
	r := replica(t, newServer(t).url)
	r.create("bad", 1)
	const body = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"bad"},"spec":{"size":-1,"unknown":true}}`
	here := r.store.Resources()[0]
	for write, do := range map[string]func(registry.WriteOptions) error{
		"create": func(o registry.WriteOptions) error {
			_, err := here.Create(t.Context(), "default", []byte(body), o)
			return err
		},
		"update": func(o registry.WriteOptions) error {
			_, _, err := here.Update(t.Context(), "default/bad", func(registry.Item) ([]byte, error) { return []byte(body), nil }, o)
			return err
		},
	} {
		var warned []string
		err := do(registry.WriteOptions{Validation: registry.WarnUnknown, Warn: func(text string) { warned = append(warned, text) }})
		var invalid *registry.InvalidError
		require.ErrorAs(t, err, &invalid, write)
		require.Equal(t, []string{`unknown field "spec.unknown"`}, warned, write)
	}
}

// A replica drops the namespace of an object whose kind has none, as its origin does.
func TestReplica_DropsTheNamespaceOfAClusterScopedObject(t *testing.T) {
	var ignored atomic.Int64
	scoped := widgets(&ignored)
	scoped.Kind.ClusterScoped = true
	origin := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Kind.ClusterScoped = true })
	format, err := registry.FormatOf(scoped)
	require.NoError(t, err)
	b, err := remote.New(format, remote.Config{URL: origin.url})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	r := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Kind.ClusterScoped, cfg.Engine.Backend = true, b })
	o, err := r.store.Create(t.Context(), widget("a", 1), registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, "a", o.Key)
	require.Empty(t, o.Value.Namespace)
}
