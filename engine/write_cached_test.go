package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Where reading storage is I/O, a write first tries the object that the cache has.
func TestWrite_DoesNotReadWhatTheCacheHas(t *testing.T) {
	writes := map[string]func(e *engine.Engine[pod]) error{
		"Put": func(e *engine.Engine[pod]) error { return errorOf(e.Put(t.Context(), pod{Name: "a", N: 2})) },
		"Update": func(e *engine.Engine[pod]) error {
			return errorOf(e.Update(t.Context(), "a", func(p pod) (pod, error) { p.N++; return p, nil }, engine.UpdateOptions{}))
		},
		"Modify": func(e *engine.Engine[pod]) error {
			return errorOf(e.Modify(t.Context(), "a", func(o *engine.Object[pod]) (engine.Change[pod], error) {
				return engine.Change[pod]{Value: pod{Name: "a", N: o.Value.N + 1}}, nil
			}, engine.ModifyOptions{}))
		},
		"Delete": func(e *engine.Engine[pod]) error { return errorOf(e.Delete(t.Context(), "a", engine.DeleteOptions{})) },
	}
	for name, write := range writes {
		for _, blocks := range []bool{true, false} {
			beneath, err := memory.New(cfg().Schema(), memory.Options{FirstRevision: 1})
			require.NoError(t, err)
			storage := faulty.New(beneath, faulty.Options{Blocks: blocks})
			e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Backend, c.FirstRevision = storage, 0 })
			rev, err := revisionOf(e.Create(ctx, pod{Name: "a", N: 1}))
			require.NoError(t, err)
			require.NoError(t, e.WaitForRevision(ctx, rev))
			before := storage.Calls(faulty.OpGet)
			require.NoError(t, write(e))
			require.Equal(t, blocks, storage.Calls(faulty.OpGet) == before, "%s, blocks: %v", name, blocks)
			require.NoError(t, e.Close())
			require.NoError(t, storage.Close())
		}
	}
}
