package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func body(t *testing.T, it registry.Item) string {
	t.Helper()
	text, err := it.JSON()
	require.NoError(t, err)
	return string(text)
}

// ahead is storage whose newest revision a cache over it never learns of.
type ahead struct {
	backend.Backend
	newest engine.Revision

	mu  sync.Mutex
	err error
}

func (a *ahead) Revision(context.Context) (engine.Revision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.newest, a.err
}

// WaitForRevision for a revision that the cache does not have is ErrNotReady if storage has the
// revision or does not answer, and ErrFuture if storage does not have it either. A refusal
// is returned.
func TestResource_WaitForRevisionTellsACacheThatIsBehindFromTheFuture(t *testing.T) {
	cfg := config()
	there, err := memory.New(registry.Schema(cfg), memory.Options{FirstRevision: 10})
	require.NoError(t, err)
	a := &ahead{Backend: there, newest: 20}
	cfg.Engine.Backend, cfg.Engine.FreshnessTimeout = a, time.Millisecond
	r := newStore(t, cfg).Resources()[0]
	require.Eventually(t, func() bool { return r.WaitForRevision(t.Context(), 10) == nil }, time.Minute, time.Millisecond)
	become := func(rev engine.Revision, text string) {
		require.Eventually(t, func() bool { return strings.Contains(r.WaitForRevision(t.Context(), rev).Error(), text) }, time.Minute, time.Millisecond, text)
	}
	become(21, "too large revision: 21")
	require.ErrorIs(t, r.WaitForRevision(t.Context(), 20), engine.ErrNotReady)
	become(20, "storage is at revision 20, and the cache is behind")
	a.mu.Lock()
	a.err = errors.New("unplugged")
	a.mu.Unlock()
	become(21, "unplugged")
	a.mu.Lock()
	a.err = fmt.Errorf("%w: read widgets", backend.ErrDenied)
	a.mu.Unlock()
	require.Eventually(t, func() bool {
		err := r.WaitForRevision(t.Context(), 21)
		return errors.Is(err, backend.ErrDenied) && !errors.Is(err, engine.ErrNotReady)
	}, time.Minute, time.Millisecond, "the client is not to come back")
}

// Without a cache there is nothing that could be behind, and storage is asked at once.
func TestResource_WaitForRevisionWithoutACacheAsksStorage(t *testing.T) {
	cfg := config()
	cfg.Engine.NoCache = true
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	r := s.Resources()[0]
	require.NoError(t, r.WaitForRevision(t.Context(), 0))
	require.NoError(t, r.WaitForRevision(t.Context(), o.Revision))
	require.ErrorIs(t, r.WaitForRevision(t.Context(), o.Revision+1000), engine.ErrFuture)
}

func TestResource_InfoDescribesTheKind(t *testing.T) {
	s := newStore(t, config())
	all := s.Resources()
	require.Len(t, all, 2)
	info := all[0].Info()
	require.Equal(t, "widgets", info.Kind.Plural)
	require.Equal(t, "widget", info.Kind.Singular)
	require.Contains(t, info.Verbs, "deletecollection")
	require.Equal(t, []string{"spec.color", "metadata.name", "metadata.namespace"}, info.Fields)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(info.Schema, &schema))
	spec := schema["properties"].(map[string]any)["spec"].(map[string]any)
	require.Equal(t, map[string]any{"type": "integer", "format": "int64", "description": "How large it is."}, spec["properties"].(map[string]any)["size"])
	require.Equal(t, []any{"size"}, spec["required"])
	require.Equal(t, "status", all[1].Info().Subresource)
	require.Equal(t, []string{"get", "patch", "update"}, all[1].Info().Verbs)
	_, err := all[1].Create(t.Context(), "default", []byte(`{}`), registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrUnsupported)
}

func TestResource_KindsKnownOnlyAtRunTime(t *testing.T) {
	s, err := registry.New(registry.Config[unstructured.Unstructured]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Policy", Status: true, ClusterScoped: true},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	r, status := s.Resources()[0], s.Resources()[1]
	require.Equal(t, "policies", r.Info().Kind.Plural)
	it, err := r.Create(t.Context(), "", []byte(`{"metadata":{"name":"p"},"spec":{"n":1},"status":{"x":1}}`), registry.WriteOptions{})
	require.NoError(t, err)
	before := body(t, it)
	require.NotContains(t, before, "status")
	next, _, err := status.Update(t.Context(), "p", func(live registry.Item) ([]byte, error) {
		return []byte(`{"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"n":2},"status":{"x":2}}`), nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, part(t, body(t, next), "spec"))
	require.JSONEq(t, `{"x":2}`, part(t, body(t, next), "status"))
	require.Equal(t, before, body(t, it), "what was handed out is not changed")
	again, _, err := r.Update(t.Context(), "p", func(live registry.Item) ([]byte, error) { return live.JSON() }, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, next.Revision(), again.Revision())
	_, err = r.Create(t.Context(), "", []byte(`{"metadata":{"name":"q","labels":["a"]}}`), registry.WriteOptions{})
	require.ErrorAs(t, err, new(*registry.BadRequestError))
}

// A program may rename the version of a kind whose objects are stored.
func TestItem_HasTheVersionOfTheKind(t *testing.T) {
	renamed := func(version string) registry.Kind {
		return registry.Kind{Group: "example.com", Version: version, Kind: "Widget"}
	}
	t.Run("a struct", func(t *testing.T) {
		cfg := config()
		cfg.Kind = renamed("v1beta1")
		objects, err := memory.New(registry.Schema(cfg), memory.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, objects.Close()) }()
		cfg.Engine.Backend = objects
		create(t, newStore(t, cfg), widget("w", 1))
		cfg.Kind = renamed("v1")
		requireVersion(t, newStore(t, cfg).Resources()[0])
	})
	t.Run("a map", func(t *testing.T) {
		cfg := registry.Config[unstructured.Unstructured]{Kind: renamed("v1beta1")}
		objects, err := memory.New(registry.Schema(cfg), memory.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, objects.Close()) }()
		cfg.Engine.Backend = objects
		before, err := registry.New(cfg)
		require.NoError(t, err)
		defer before.Close()
		_, err = before.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"w"}}`), registry.WriteOptions{})
		require.NoError(t, err)
		cfg.Kind = renamed("v1")
		after, err := registry.New(cfg)
		require.NoError(t, err)
		defer after.Close()
		requireVersion(t, after.Resources()[0])
	})
}

// requireVersion requires that the object default/w is of v1, when it is read and when it is
// written.
func requireVersion(t *testing.T, r registry.Resource) {
	t.Helper()
	it, err := r.Get(t.Context(), "default/w", engine.GetOptions{})
	require.NoError(t, err)
	text, err := it.JSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"apiVersion":"example.com/v1"`)
	var live string
	_, _, err = r.Update(t.Context(), "default/w", func(it registry.Item) ([]byte, error) {
		text, err := it.JSON()
		live = string(text)
		return text, err
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.Contains(t, live, `"apiVersion":"example.com/v1"`)
}

// A server refuses what is no verb of the kind, and the program itself does it.
func TestResource_ClientsMayHaveToDeleteObjectsOneByOne(t *testing.T) {
	cfg := config()
	cfg.NoDeleteCollection = true
	s := newStore(t, cfg)
	require.Equal(t, []string{"create", "delete", "get", "list", "patch", "update", "watch"}, s.Resources()[0].Info().Verbs)
	create(t, s, widget("a", 1))
	deleted, err := s.DeleteCollection(t.Context(), engine.ListOptions{}, registry.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, deleted)
}
