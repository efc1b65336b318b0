package backend_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

func TestUpdate_OfWhatIsMissingIsNotFound(t *testing.T) {
	f := newFixture(t)
	calls := 0
	_, err := f.GuaranteedUpdate(f.ctx, "p", setImage("v2", &calls), backend.UpdateOptions{})
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Zero(t, calls)
}

func TestUpdate_CreatesWhatIsMissingIfAsked(t *testing.T) {
	f := newFixture(t)
	o, err := f.GuaranteedUpdate(f.ctx, "p", func(_ context.Context, current *store.Object) (*store.Object, error) {
		require.Nil(t, current)
		return newPod("p", "v1"), nil
	}, backend.UpdateOptions{CreateIfMissing: true})
	require.NoError(t, err)
	require.Equal(t, o.Revision, o.Created)
	f.holds("p", "v1")
}

func TestUpdate_ReplacesWhatIsThere(t *testing.T) {
	f := newFixture(t)
	created, calls := f.create("p", "v1"), 0
	o, err := f.GuaranteedUpdate(f.ctx, "p", setImage("v2", &calls), backend.UpdateOptions{})
	require.NoError(t, err)
	require.Greater(t, o.Revision, created.Revision)
	require.Equal(t, 1, calls)
	f.holds("p", "v2")
}

func TestUpdate_WithoutAChangeWritesNothing(t *testing.T) {
	f := newFixture(t)
	created, calls := f.create("p", "v1"), 0
	f.below.puts = 0
	o, err := f.GuaranteedUpdate(f.ctx, "p", setImage("v1", &calls), backend.UpdateOptions{})
	require.NoError(t, err)
	require.Same(t, created, o)
	require.Zero(t, f.below.puts)
}

func TestUpdate_WithoutAChangeOfStaleDataIsMadeAgain(t *testing.T) {
	f := newFixture(t)
	stale, calls := f.create("p", "v1"), 0
	f.rival("p", "v2")
	o, err := f.GuaranteedUpdate(f.ctx, "p", setImage("v1", &calls), backend.UpdateOptions{Suggestion: stale})
	require.NoError(t, err)
	require.Equal(t, 2, calls, "once on the suggestion, once on the live object")
	require.Equal(t, "v1", imageOf(o))
	f.holds("p", "v1")
}

func TestUpdate_HonoursPreconditions(t *testing.T) {
	f := newFixture(t)
	created, calls := f.create("p", "v1"), 0
	update := func(p backend.Preconditions) error {
		_, err := f.GuaranteedUpdate(f.ctx, "p", setImage(fmt.Sprint("image ", calls), &calls), backend.UpdateOptions{Preconditions: p})
		return err
	}
	require.NoError(t, update(backend.Preconditions{UID: created.Created}))
	err := update(backend.Preconditions{UID: created.Created + 100})
	require.ErrorIs(t, err, store.ErrPrecondition)
	var failed *store.PreconditionError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, store.PreconditionError{Key: "p", Field: "UID", Want: created.Created + 100, Got: created.Created}, *failed)
	require.ErrorIs(t, update(backend.Preconditions{Revision: created.Revision}), store.ErrPrecondition, "it was updated since")
	require.Equal(t, 1, calls)
}

func TestUpdate_NothingMeetsAPreconditionIfItIsMissing(t *testing.T) {
	f := newFixture(t)
	_, err := f.GuaranteedUpdate(f.ctx, "p", nil, backend.UpdateOptions{CreateIfMissing: true, Preconditions: backend.Preconditions{UID: 7}})
	require.ErrorIs(t, err, store.ErrPrecondition)
}

func TestUpdate_WithTTL(t *testing.T) {
	f := newFixture(t)
	f.create("p", "v1")
	calls := 0
	written := func(o *store.Object, err error) *store.Object {
		require.NoError(t, err)
		return o
	}
	update := func(ttl time.Duration) *store.Object {
		return written(f.GuaranteedUpdate(f.ctx, "p", setImage("v1", &calls), backend.UpdateOptions{TTL: ttl}))
	}
	first := update(time.Minute)
	f.clock.Advance(50 * time.Second)
	second := update(time.Minute)
	require.True(t, second.Expires.After(first.Expires), "an equal value still renews the time to live")
	f.clock.Advance(50 * time.Second)
	f.holds("p", "v1")
	require.Equal(t, second, update(0), "an equal value without TTL changes nothing")
	third := written(f.GuaranteedUpdate(f.ctx, "p", setImage("v2", &calls), backend.UpdateOptions{}))
	require.Equal(t, second.Expires, third.Expires, "another value leaves the expiry as it is")
	forever := backend.UpdateOptions{Permanent: true}
	permanent := written(f.GuaranteedUpdate(f.ctx, "p", setImage("v2", &calls), forever))
	require.True(t, permanent.Expires.IsZero(), "an equal value still makes the object permanent, if that is asked for")
	require.Equal(t, permanent, written(f.GuaranteedUpdate(f.ctx, "p", setImage("v2", &calls), forever)), "it is already")
	f.clock.Advance(time.Hour)
	f.holds("p", "v2")
	update(time.Second)
	f.clock.Advance(time.Second)
	f.holds("p", "")
}

func TestUpdate_SuggestionWithOtherContentIsRewritten(t *testing.T) {
	f := newFixture(t)
	live, calls := f.create("p", "v1"), 0
	wrong := newPod("p", "v2")
	wrong.Key, wrong.Created, wrong.Revision = live.Key, live.Created, live.Revision-1
	o, err := f.GuaranteedUpdate(f.ctx, "p", setImage("v2", &calls), backend.UpdateOptions{Suggestion: wrong})
	require.NoError(t, err)
	require.Greater(t, o.Revision, live.Revision)
	f.holds("p", "v2")
}

func TestUpdate_ConflictingOnesBothApply(t *testing.T) {
	f := newFixture(t)
	f.create("p", "1")
	calls := 0
	f.below.interfere = func() { f.rival("p", "2") }
	_, err := f.GuaranteedUpdate(f.ctx, "p", func(_ context.Context, current *store.Object) (*store.Object, error) {
		calls++
		return newPod("p", imageOf(current)+"+mine"), nil
	}, backend.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, 2, calls)
	f.holds("p", "2+mine")
}

func TestUpdate_ManyGoroutinesLoseNone(t *testing.T) {
	f := newFixture(t)
	// The counting wrapper is not for goroutines.
	s := backend.NewStorage(f.below.Backend, podSchema())
	f.create("p", "")
	const goroutines, each = 8, 50
	var wg sync.WaitGroup
	errs := make(chan error, goroutines*each)
	for range goroutines {
		wg.Go(func() {
			for range each {
				_, err := s.GuaranteedUpdate(f.ctx, "p", func(_ context.Context, current *store.Object) (*store.Object, error) {
					return newPod("p", imageOf(current)+"|"), nil
				}, backend.UpdateOptions{})
				errs <- err
			}
		})
	}
	wg.Wait()
	for range goroutines * each {
		require.NoError(t, <-errs)
	}
	o, err := s.Get(f.ctx, "p")
	require.NoError(t, err)
	require.Len(t, imageOf(o), goroutines*each)
}

var errRefused = errors.New("refused")

// refuse is an UpdateFunc that fails on one image.
func refuse(image string, calls *int) backend.UpdateFunc {
	return func(_ context.Context, current *store.Object) (*store.Object, error) {
		*calls++
		if imageOf(current) == image {
			return nil, errRefused
		}
		return newPod(current.Key, imageOf(current)+"+"), nil
	}
}

func TestUpdate_ErrorOnASuggestion(t *testing.T) {
	t.Run("stale suggestion: tried again on the live object", func(t *testing.T) {
		f := newFixture(t)
		stale, calls := f.create("p", "v1"), 0
		f.rival("p", "v2")
		_, err := f.GuaranteedUpdate(f.ctx, "p", refuse("v1", &calls), backend.UpdateOptions{Suggestion: stale})
		require.NoError(t, err)
		require.Equal(t, 2, calls)
		f.holds("p", "v2+")
	})
	t.Run("current suggestion: final", func(t *testing.T) {
		f := newFixture(t)
		current, calls := f.create("p", "v1"), 0
		_, err := f.GuaranteedUpdate(f.ctx, "p", refuse("v1", &calls), backend.UpdateOptions{Suggestion: current})
		require.ErrorIs(t, err, errRefused)
		require.Equal(t, 1, calls)
		require.Equal(t, 1, f.below.gets, "one read to find out that the suggestion was right")
	})
	t.Run("current suggestion: no read before the write", func(t *testing.T) {
		f := newFixture(t)
		current, calls := f.create("p", "v1"), 0
		_, err := f.GuaranteedUpdate(f.ctx, "p", setImage("v2", &calls), backend.UpdateOptions{Suggestion: current})
		require.NoError(t, err)
		require.Zero(t, f.below.gets)
	})
	t.Run("the user's own ErrConflict is final", func(t *testing.T) {
		f := newFixture(t)
		f.create("p", "v1")
		calls := 0
		_, err := f.GuaranteedUpdate(f.ctx, "p", func(context.Context, *store.Object) (*store.Object, error) {
			calls++
			return nil, fmt.Errorf("mine: %w", store.ErrConflict)
		}, backend.UpdateOptions{})
		require.ErrorIs(t, err, store.ErrConflict)
		require.Equal(t, 1, calls)
	})
}

// A write whose answer was lost may have been done: a second try would do it twice, or
// say that it was not done.
func TestUpdate_AnUncertainWriteIsNotTriedAgain(t *testing.T) {
	for name, suggested := range map[string]bool{"on a suggestion": true, "on the live object": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var suggestion *store.Object
			if o := f.create("p", "v1"); suggested {
				suggestion = o
			}
			calls := 0
			f.below.unanswered = true
			_, err := f.GuaranteedUpdate(f.ctx, "p", func(_ context.Context, current *store.Object) (*store.Object, error) {
				calls++
				return newPod("p", imageOf(current)+"+"), nil
			}, backend.UpdateOptions{Suggestion: suggestion})
			require.ErrorIs(t, err, backend.ErrUncertain)
			require.Equal(t, 1, calls)
			f.holds("p", "v1+")

			if suggested {
				suggestion, err = f.below.Backend.Get(f.ctx, "p")
				require.NoError(t, err)
			}
			f.below.unanswered = true
			_, err = f.Delete(f.ctx, "p", backend.DeleteOptions{Suggestion: suggestion})
			require.ErrorIs(t, err, backend.ErrUncertain)
			f.holds("p", "")
		})
	}
}

// An error of the caller's function says nothing of this write, even if it is that of an
// uncertain one to somewhere else: on a stale suggestion the live object is tried.
func TestUpdate_UncertainErrorOfTheFunctionIsNotThatOfTheWrite(t *testing.T) {
	f := newFixture(t)
	stale := f.create("p", "v1")
	_, err := f.GuaranteedUpdate(f.ctx, "p", setImage("v2", new(int)), backend.UpdateOptions{})
	require.NoError(t, err)
	var seen []string
	_, err = f.GuaranteedUpdate(f.ctx, "p", func(_ context.Context, current *store.Object) (*store.Object, error) {
		seen = append(seen, imageOf(current))
		if len(seen) == 1 {
			return nil, fmt.Errorf("another engine: %w", backend.ErrUncertain)
		}
		return newPod("p", "v3"), nil
	}, backend.UpdateOptions{Suggestion: stale})
	require.NoError(t, err)
	require.Equal(t, []string{"v1", "v2"}, seen)
	f.holds("p", "v3")
}

func TestUpdate_OfAnObjectDeletedInBetween(t *testing.T) {
	f := newFixture(t)
	f.create("p", "v1")
	calls := 0
	f.below.interfere = func() { f.rivalDelete("p") }
	_, err := f.GuaranteedUpdate(f.ctx, "p", setImage("v2", &calls), backend.UpdateOptions{})
	require.ErrorIs(t, err, store.ErrNotFound)
	f.holds("p", "")
}

func TestUpdate_CannotRename(t *testing.T) {
	f := newFixture(t)
	f.create("p", "v1")
	_, err := f.GuaranteedUpdate(f.ctx, "p", func(context.Context, *store.Object) (*store.Object, error) {
		return newPod("q", "v1"), nil
	}, backend.UpdateOptions{})
	require.ErrorIs(t, err, store.ErrInvalidKey)
	var mismatch *backend.KeyMismatchError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, backend.KeyMismatchError{Key: "p", Got: "q"}, *mismatch)
}

func TestUpdate_RetriesUntilTheContextEnds(t *testing.T) {
	f := newFixture(t)
	f.create("p", "0")
	ctx, cancel := context.WithCancel(f.ctx)
	calls := 0
	_, err := f.GuaranteedUpdate(ctx, "p", func(context.Context, *store.Object) (*store.Object, error) {
		calls++
		f.rival("p", fmt.Sprint(calls)) // another writer is always faster
		if calls == 50 {
			cancel()
		}
		return newPod("p", "mine"), nil
	}, backend.UpdateOptions{})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 50, calls)
	f.holds("p", "50")
}

func TestUpdate_ASuggestionOfAnotherKeyIsNone(t *testing.T) {
	f := newFixture(t)
	f.create("p", "v1")
	other, calls := f.create("q", "v9"), 0
	_, err := f.GuaranteedUpdate(f.ctx, "p", setImage("v2", &calls), backend.UpdateOptions{Suggestion: other})
	require.NoError(t, err)
	f.holds("p", "v2")
	f.holds("q", "v9")
}

// An object that no storage has returned cannot be the live one.
func TestUpdate_ASuggestionWithoutARevisionIsNone(t *testing.T) {
	f := newFixture(t)
	made := drafted("p", "v1")
	_, err := f.GuaranteedUpdate(f.ctx, "p", setImage("v2", new(int)), backend.UpdateOptions{Suggestion: made})
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = f.Delete(f.ctx, "p", backend.DeleteOptions{Suggestion: made})
	require.ErrorIs(t, err, store.ErrNotFound)
	f.holds("p", "")
}

func TestUpdate_RefusesNilOfTheFunction(t *testing.T) {
	f := newFixture(t)
	f.create("p", "v1")
	_, err := f.GuaranteedUpdate(f.ctx, "p", func(context.Context, *store.Object) (*store.Object, error) { return nil, nil }, backend.UpdateOptions{})
	require.ErrorIs(t, err, usercode.ErrConfig)
	require.ErrorContains(t, err, "UpdateFunc returned nil")
	f.holds("p", "v1")
}

// A panic in prepare is an error, as one in any function of the user's.
func TestPut_ContainsAPanicInPrepare(t *testing.T) {
	f := newFixture(t)
	oops := func(context.Context, *store.Object, *store.Object) error { panic("oops") }
	var err error
	require.NotPanics(t, func() {
		_, err = f.Put(f.ctx, drafted("a", "1"), oops, backend.UpdateOptions{CreateIfMissing: true})
	})
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.ErrorContains(t, err, `for "a"`)
}
