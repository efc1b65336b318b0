package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
)

// A write that names a revision which the object no longer has is a conflict.
func TestWrite_StaleOnesConflict(t *testing.T) {
	e, ctx := newEngine(t, nil)
	old, err := e.Create(ctx, pod{Name: "a"})
	require.NoError(t, err)
	newer, err := e.Put(ctx, pod{Name: "a", N: 1})
	require.NoError(t, err)
	unless := func(p pod) (pod, error) { p.N++; return p, nil }
	_, replaced := e.Delete(ctx, "a", engine.DeleteOptions{Preconditions: engine.Preconditions{UID: old.Created + 100}})
	_, removed := e.Delete(ctx, "a", engine.DeleteOptions{Preconditions: engine.Preconditions{Revision: old.Revision}})
	_, updated := e.Update(ctx, "a", unless, engine.UpdateOptions{Preconditions: engine.Preconditions{Revision: old.Revision}})
	_, missing := e.Update(ctx, "b", unless, engine.UpdateOptions{
		CreateIfMissing: true, Preconditions: engine.Preconditions{Revision: old.Revision},
	})
	for what, err := range map[string]error{
		"deletion of another object": replaced, "deletion": removed, "update": updated, "update of what is gone": missing,
	} {
		require.ErrorIs(t, err, engine.ErrConflict, what)
		require.ErrorIs(t, err, engine.ErrPrecondition, what)
		require.False(t, backend.Retryable(err), "the same call conflicts again: %s", what)
	}
	now, err := e.Get(ctx, "a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, newer, now, "nothing was written")
}
