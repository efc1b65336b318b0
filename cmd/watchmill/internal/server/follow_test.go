package server

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Clients read what is served in place of a kind until that has its objects, too. A kind that the token must not
// read never has any, and one that is new keeps the others waiting.
func TestFollowing_WaitsForWhatIsServedMeanwhile(t *testing.T) {
	refuses := false
	d, err := openData(&Options{Data: "tape:reel", Storages: Storages{"tape": func(_ context.Context, _, _ string, schema store.Schema, _ func(error)) (backend.Backend, error) {
		m, err := memory.New(schema, memory.Options{})
		b := faulty.New(m, faulty.Options{})
		if refuses {
			b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Skip: 1, Do: faulty.Fail(nil)}) // but for the scope of what there is
		}
		return b, err
	}}}, newHost(t), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	served, err := d.open(t.Context(), definedKind(gears(t), "gears.yaml"))
	require.NoError(t, err)
	served.awaitReady(t.Context())
	refuses = true
	refused, err := d.open(t.Context(), definedKind(gears(t), "gears.yaml"))
	require.NoError(t, err)
	require.Equal(t, changedWithin, readyLimit(served))
	require.Equal(t, readyWithin, readyLimit(refused))
	require.Equal(t, readyWithin, readyLimit(nil))
	require.NoError(t, served.close())
	require.NoError(t, refused.close())
}

// A replica begins with the history of its origin, of a time when there was no definition yet.
func TestFollowing_KeepsAKindThatItsControllerDoesNotKnowYet(t *testing.T) {
	definitions, err := registry.New(registry.Config[object]{Kind: registry.Kind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", ClusterScoped: true}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, definitions.Close()) })
	stored, err := definitions.Create(t.Context(), *gears(t).Manifest, registry.WriteOptions{})
	require.NoError(t, err)
	name := stored.Value.GetName()
	k := &openKind{kind: kind{definition: &stored.Value}}
	f := &following{definitions: definitions.Engine(), kinds: map[string]*openKind{name: k}}
	_, err = f.reconcile(t.Context(), name, nil)
	require.NoError(t, err)
	require.Same(t, k, f.kinds[name])
}
