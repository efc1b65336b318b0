package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/usercode"
)

// Modify sees the whole object, chooses its TTL, and may delete it.
func TestModify_SeesTheObjectAndChoosesItsEnd(t *testing.T) {
	e, ctx := newEngine(t, nil)
	var seen []*engine.Object[pod]
	modify := func(c engine.Change[pod]) *engine.Object[pod] {
		o, err := e.Modify(ctx, "a", func(o *engine.Object[pod]) (engine.Change[pod], error) {
			seen = append(seen, o)
			return c, nil
		}, engine.ModifyOptions{CreateIfMissing: true})
		require.NoError(t, err)
		return o
	}
	created := modify(engine.Change[pod]{Value: pod{Name: "a"}, TTL: time.Hour})
	updated := modify(engine.Change[pod]{Value: pod{Name: "a", N: 1}})
	permanent := modify(engine.Change[pod]{Value: pod{Name: "a", N: 1}, Permanent: true})
	gone := modify(engine.Change[pod]{Delete: true})
	require.Equal(t, []*engine.Object[pod]{nil, created, updated, permanent}, seen)
	require.Equal(t, created.Written.Add(time.Hour), created.Expires)
	require.Equal(t, created.Expires, updated.Expires, "without a TTL it expires as before")
	require.True(t, permanent.Expires.IsZero())
	require.Equal(t, engine.Object[pod]{
		Key: "a", Revision: permanent.Revision + 1, Created: created.Created, Labels: permanent.Labels,
		Written: gone.Written, Value: pod{Name: "a", N: 1},
	}, *gone)
	_, err := e.Get(ctx, "a", engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

func TestModify_RefusesBadInput(t *testing.T) {
	e, ctx := newEngine(t, nil)
	_, err := e.Modify(ctx, "a", nil, engine.ModifyOptions{})
	wanted{usercode.ErrConfig, []string{"change", "nil", "give a function"}}.require(t, err)
	remove := func(*engine.Object[pod]) (engine.Change[pod], error) { return engine.Change[pod]{Delete: true}, nil }
	_, err = e.Modify(ctx, "a", remove, engine.ModifyOptions{CreateIfMissing: true})
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, err = e.Modify(ctx, "/", remove, engine.ModifyOptions{})
	require.ErrorIs(t, err, engine.ErrInvalidKey)
}

// Replace writes if the object is still at the revision that it was read at.
func TestReplace_WritesOnlyOverTheRevisionItWasMadeFrom(t *testing.T) {
	e, ctx := newEngine(t, nil)
	read, err := e.CreateWith(ctx, pod{Name: "a"}, engine.CreateOptions{TTL: time.Hour})
	require.NoError(t, err)
	first, err := e.Replace(ctx, pod{Name: "a", N: 1}, read.Revision)
	require.NoError(t, err)
	require.Equal(t, read.Expires, first.Expires, "the TTL goes on")
	_, err = e.Replace(ctx, pod{Name: "a", N: 2}, read.Revision)
	wanted{engine.ErrConflict, []string{`"a"`, read.Revision.String(), first.Revision.String()}}.require(t, err)
	same, err := e.Replace(ctx, pod{Name: "a", N: 1}, first.Revision)
	require.NoError(t, err)
	require.Equal(t, first, same, "an equal value writes nothing")
	_, err = e.Replace(ctx, pod{Name: "a", N: 2}, 0)
	wanted{usercode.ErrConfig, []string{"revision", "zero", "Put"}}.require(t, err)
	_, err = e.Delete(ctx, "a", engine.DeleteOptions{})
	require.NoError(t, err)
	_, err = e.Replace(ctx, pod{Name: "a", N: 2}, first.Revision)
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.NotErrorIs(t, err, engine.ErrConflict)
	_, err = e.Create(ctx, pod{Name: "a"})
	require.NoError(t, err)
	_, err = e.Replace(ctx, pod{Name: "a", N: 2}, first.Revision)
	require.ErrorIs(t, err, engine.ErrConflict, "another object has the key")
}

// A precondition can demand that there is no object.
func TestPreconditions_CanDemandAbsence(t *testing.T) {
	e, ctx := newEngine(t, nil)
	absent := engine.Preconditions{Absent: true}
	put := func(n int) (*engine.Object[pod], error) {
		return e.PutWith(ctx, pod{Name: "a", N: n}, engine.PutOptions{Preconditions: absent})
	}
	created, err := put(1)
	require.NoError(t, err)
	require.Equal(t, created.Revision, created.Created)
	_, err = put(2)
	for _, kind := range []error{engine.ErrExists, engine.ErrPrecondition, engine.ErrConflict} {
		require.ErrorIs(t, err, kind)
	}
	_, err = e.Update(ctx, "b", func(p pod) (pod, error) { p.Name = "b"; return p, nil }, engine.UpdateOptions{Preconditions: absent})
	require.NoError(t, err, "an update creates")
	_, err = e.Delete(ctx, "c", engine.DeleteOptions{Preconditions: absent})
	wanted{usercode.ErrConfig, []string{"Absent", "deletion"}}.require(t, err)
}
