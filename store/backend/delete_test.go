package backend_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// keep is a ValidateFunc that refuses to delete pods with one image.
func keep(image string, calls *int) backend.ValidateFunc {
	return func(_ context.Context, current *store.Object) error {
		*calls++
		if imageOf(current) == image {
			return errRefused
		}
		return nil
	}
}

func TestDelete_Unconditional(t *testing.T) {
	f := newFixture(t)
	created := f.create("p", "v1")
	gone, err := f.Delete(f.ctx, "p", backend.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, "v1", imageOf(gone))
	require.Greater(t, gone.Revision, created.Revision)
	_, err = f.Delete(f.ctx, "p", backend.DeleteOptions{})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestDelete_Conditional(t *testing.T) {
	f := newFixture(t)
	created := f.create("p", "v1")
	_, err := f.Delete(f.ctx, "p", backend.DeleteOptions{Preconditions: backend.Preconditions{UID: created.Created + 1}})
	require.ErrorIs(t, err, store.ErrPrecondition)
	f.holds("p", "v1")
	_, err = f.Delete(f.ctx, "p", backend.DeleteOptions{Preconditions: backend.Preconditions{UID: created.Created}})
	require.NoError(t, err)
	f.holds("p", "")
}

func TestDelete_WithSuggestion(t *testing.T) {
	f := newFixture(t)
	fresh := f.create("p", "v1")
	_, err := f.Delete(f.ctx, "p", backend.DeleteOptions{Suggestion: fresh})
	require.NoError(t, err)
	require.Zero(t, f.below.gets, "a fresh suggestion saves the read")
	f.holds("p", "")
}

func TestDelete_WithSuggestionAndConflict(t *testing.T) {
	f := newFixture(t)
	stale := f.create("p", "v1")
	f.rival("p", "v2")
	gone, err := f.Delete(f.ctx, "p", backend.DeleteOptions{Suggestion: stale})
	require.NoError(t, err)
	require.Equal(t, "v2", imageOf(gone), "what was deleted is the live object")
	f.holds("p", "")
}

func TestDelete_WithConflict(t *testing.T) {
	f := newFixture(t)
	f.create("p", "v1")
	calls := 0
	gone, err := f.Delete(f.ctx, "p", backend.DeleteOptions{Validate: func(context.Context, *store.Object) error {
		if calls++; calls == 1 {
			f.rival("p", "v2")
		}
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, 2, calls)
	require.Equal(t, "v2", imageOf(gone))
}

func TestDelete_WithSuggestionOfDeletedObject(t *testing.T) {
	f := newFixture(t)
	stale := f.create("p", "v1")
	f.rivalDelete("p")
	_, err := f.Delete(f.ctx, "p", backend.DeleteOptions{Suggestion: stale})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestDelete_ValidationWithSuggestion(t *testing.T) {
	f := newFixture(t)
	fresh, calls := f.create("p", "v1"), 0
	_, err := f.Delete(f.ctx, "p", backend.DeleteOptions{Suggestion: fresh, Validate: keep("v1", &calls)})
	require.ErrorIs(t, err, errRefused)
	require.Equal(t, 1, calls, "the suggestion was right: validating again would change nothing")
	f.holds("p", "v1")

	calls = 0
	f.rival("p", "v2")
	_, err = f.Delete(f.ctx, "p", backend.DeleteOptions{Suggestion: fresh, Validate: keep("v1", &calls)})
	require.NoError(t, err)
	require.Equal(t, 2, calls)
	f.holds("p", "")
}

func TestDelete_ValidationThatOnlyTheSuggestionPasses(t *testing.T) {
	f := newFixture(t)
	stale, calls := f.create("p", "v1"), 0
	f.rival("p", "v2")
	_, err := f.Delete(f.ctx, "p", backend.DeleteOptions{Suggestion: stale, Validate: keep("v2", &calls)})
	require.ErrorIs(t, err, errRefused)
	require.Equal(t, 2, calls)
	f.holds("p", "v2")
}

func TestDelete_PreconditionWithStaleSuggestion(t *testing.T) {
	f := newFixture(t)
	stale := f.create("p", "v1")
	f.rivalDelete("p")
	live := f.create("p", "v2")
	_, err := f.Delete(f.ctx, "p", backend.DeleteOptions{Suggestion: stale, Preconditions: backend.Preconditions{UID: live.Created}})
	require.NoError(t, err)
	f.holds("p", "")
}

func TestDelete_PreconditionThatOnlyTheSuggestionMeets(t *testing.T) {
	f := newFixture(t)
	stale := f.create("p", "v1")
	f.rivalDelete("p")
	f.create("p", "v2")
	_, err := f.Delete(f.ctx, "p", backend.DeleteOptions{Suggestion: stale, Preconditions: backend.Preconditions{UID: stale.Created}})
	require.ErrorIs(t, err, store.ErrPrecondition)
	f.holds("p", "v2")
}
