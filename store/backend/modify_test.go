package backend_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// modify is Modify by a function that returns the same change each time.
func (f *fixture) modify(change backend.Change, opts backend.ModifyOptions) (*store.Object, error) {
	return f.Modify(f.ctx, "p", func(context.Context, *store.Object) (backend.Change, error) { return change, nil }, opts)
}

func TestModify_StoresOrDeletesAsTheFunctionDecides(t *testing.T) {
	f := newFixture(t)
	_, err := f.modify(backend.Change{Draft: newPod("p", "v1")}, backend.ModifyOptions{})
	require.ErrorIs(t, err, store.ErrNotFound)
	created, err := f.modify(backend.Change{Draft: newPod("p", "v1"), TTL: time.Minute}, backend.ModifyOptions{CreateIfMissing: true})
	require.NoError(t, err)
	require.Equal(t, began.Add(time.Minute), created.Expires)
	same, err := f.modify(backend.Change{Draft: newPod("p", "v1")}, backend.ModifyOptions{})
	require.NoError(t, err)
	require.Same(t, created, same, "an equal value writes nothing")
	forever, err := f.modify(backend.Change{Draft: newPod("p", "v1"), Permanent: true}, backend.ModifyOptions{})
	require.NoError(t, err)
	require.True(t, forever.Expires.IsZero())
	gone, err := f.modify(backend.Change{Delete: true, TTL: -time.Second, Permanent: true}, backend.ModifyOptions{})
	require.NoError(t, err, "the other fields are ignored")
	require.Equal(t, "v1", imageOf(gone))
	require.Greater(t, gone.Revision, forever.Revision)
	f.holds("p", "")
	_, err = f.modify(backend.Change{Delete: true}, backend.ModifyOptions{CreateIfMissing: true})
	require.ErrorIs(t, err, store.ErrNotFound, "there is nothing to delete")
}

// What is deleted is what the function has seen, though others write in between.
func TestModify_DeletesOnlyWhatItHasSeen(t *testing.T) {
	f := newFixture(t)
	stale := f.create("p", "v1")
	f.rival("p", "v2")
	f.below.interfere = func() { f.rival("p", "v3") }
	var seen []string
	gone, err := f.Modify(f.ctx, "p", func(_ context.Context, current *store.Object) (backend.Change, error) {
		seen = append(seen, imageOf(current))
		return backend.Change{Delete: true}, nil
	}, backend.ModifyOptions{Suggestion: stale})
	require.NoError(t, err)
	require.Equal(t, []string{"v1", "v3"}, seen)
	require.Equal(t, "v3", imageOf(gone))
	f.holds("p", "")
}

func TestModify_RefusesWhatCannotBeDone(t *testing.T) {
	f := newFixture(t)
	o := f.create("p", "v1")
	for problem, change := range map[string]backend.Change{
		"Draft is nil":       {},
		"TTL is -1s":         {Draft: newPod("p", "v2"), TTL: -time.Second},
		"Permanent is set":   {Draft: newPod("p", "v2"), TTL: time.Second, Permanent: true},
		"a value with the k": {Draft: newPod("q", "v2")},
	} {
		_, err := f.modify(change, backend.ModifyOptions{})
		require.ErrorContains(t, err, problem)
	}
	_, err := f.Modify(f.ctx, "p", nil, backend.ModifyOptions{})
	require.ErrorIs(t, err, usercode.ErrConfig)
	_, err = f.Modify(f.ctx, "p", func(context.Context, *store.Object) (backend.Change, error) { panic("no") }, backend.ModifyOptions{})
	require.ErrorIs(t, err, usercode.ErrPanic)
	_, err = f.Modify(f.ctx, "p//", nil, backend.ModifyOptions{})
	require.ErrorIs(t, err, store.ErrInvalidKey)
	_, err = f.modify(backend.Change{Delete: true}, backend.ModifyOptions{Preconditions: backend.Preconditions{Revision: o.Revision + 1}})
	require.ErrorIs(t, err, store.ErrConflict)
	f.holds("p", "v1")
}

func TestPreconditions_AbsentWritesOnlyWhereThereIsNothing(t *testing.T) {
	absent := backend.Preconditions{Absent: true}
	t.Run("update and modify create", func(t *testing.T) {
		f := newFixture(t)
		o, err := f.GuaranteedUpdate(f.ctx, "p", func(_ context.Context, current *store.Object) (*store.Object, error) {
			require.Nil(t, current)
			return newPod("p", "v1"), nil
		}, backend.UpdateOptions{Preconditions: absent})
		require.NoError(t, err)
		require.Equal(t, o.Revision, o.Created)
		_, err = f.modify(backend.Change{Draft: newPod("p", "v2")}, backend.ModifyOptions{Preconditions: absent})
		for _, kind := range []error{store.ErrExists, store.ErrPrecondition, store.ErrConflict} {
			require.ErrorIs(t, err, kind)
		}
		require.ErrorContains(t, err, "there is an object at revision 2, wanted none")
		f.holds("p", "v1")
	})
	t.Run("a rival creates first", func(t *testing.T) {
		f := newFixture(t)
		f.below.interfere = func() { f.create("p", "v1") }
		_, err := f.modify(backend.Change{Draft: newPod("p", "v2")}, backend.ModifyOptions{Preconditions: absent})
		require.ErrorIs(t, err, store.ErrExists)
		f.holds("p", "v1")
	})
	t.Run("a stale suggestion is there", func(t *testing.T) {
		f := newFixture(t)
		stale := f.create("p", "v1")
		f.rivalDelete("p")
		_, err := f.modify(backend.Change{Draft: newPod("p", "v2")}, backend.ModifyOptions{Preconditions: absent, Suggestion: stale})
		require.NoError(t, err)
		f.holds("p", "v2")
	})
	t.Run("contradictions", func(t *testing.T) {
		f := newFixture(t)
		for _, both := range []backend.Preconditions{{Absent: true, Revision: 1}, {Absent: true, UID: 1}} {
			_, modify := f.modify(backend.Change{Draft: newPod("p", "v2")}, backend.ModifyOptions{Preconditions: both})
			_, update := f.GuaranteedUpdate(f.ctx, "p", nil, backend.UpdateOptions{Preconditions: both})
			_, deletion := f.Delete(f.ctx, "p", backend.DeleteOptions{Preconditions: absent})
			for _, err := range []error{modify, update, deletion} {
				require.ErrorIs(t, err, usercode.ErrConfig)
				require.ErrorContains(t, err, "Absent")
			}
		}
	})
}

// A caller that writes many objects learns from the error which one is not as it was meant.
func TestPreconditions_ErrorNamesTheObject(t *testing.T) {
	f := newFixture(t)
	o := f.create("p", "v1")
	for _, p := range []backend.Preconditions{{Absent: true}, {UID: o.Created + 1}, {Revision: o.Revision + 1}} {
		_, err := f.modify(backend.Change{Draft: newPod("p", "v2")}, backend.ModifyOptions{Preconditions: p})
		var failed *store.PreconditionError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, "p", failed.Key)
	}
}
