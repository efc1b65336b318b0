package registry_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func TestUpdate_KeepsWhatTheServerOwnsAndCountsGenerations(t *testing.T) {
	s := newStore(t, config())
	o := create(t, s, widget("a", 1))
	next, created, err := s.Update(t.Context(), o.Key, func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Spec.Size, w.Generation, w.CreationTimestamp, w.UID = 2, 99, metav1.Time{}, ""
		w.SetSelfLink("/mine")
		w.Status.Phase, w.DeletionTimestamp = "Sneaked", &metav1.Time{Time: time.Unix(1_000_000_000, 0)}
		w.Labels = map[string]string{"app": "web"}
		return w, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, o.Value.UID, next.Value.UID)
	require.Equal(t, o.Value.CreationTimestamp, next.Value.CreationTimestamp)
	require.EqualValues(t, 2, next.Value.Generation)
	require.Empty(t, next.Value.Status.Phase)
	require.Empty(t, next.Value.GetSelfLink())
	require.Nil(t, next.Value.DeletionTimestamp)
	require.Equal(t, "web", next.Labels.Get("app"))

	same, _, err := s.Update(t.Context(), o.Key, grow(0), registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, next.Revision, same.Revision, "nothing changed, nothing is written")

	relabelled, _, err := s.Update(t.Context(), o.Key, func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Labels = map[string]string{"app": "db"}
		return w, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, relabelled.Value.Generation, "labels are not spec")
}

func TestUpdate_ConflictsAreTold(t *testing.T) {
	s := newStore(t, config())
	o := create(t, s, widget("a", 1))
	update := func(edit func(*Widget), opts registry.WriteOptions) error {
		_, _, err := s.Update(t.Context(), "default/a", func(old *engine.Object[Widget]) (Widget, error) {
			w := old.Value
			w.Spec.Size++
			edit(&w)
			return w, nil
		}, opts)
		return err
	}
	nothing := func(*Widget) {}
	require.NoError(t, update(func(w *Widget) { w.ResourceVersion = o.Revision.String() }, registry.WriteOptions{}))
	require.ErrorIs(t, update(func(w *Widget) { w.ResourceVersion = o.Revision.String() }, registry.WriteOptions{}), engine.ErrConflict)
	require.ErrorIs(t, update(func(w *Widget) { w.ResourceVersion = (o.Revision + 1000).String() }, registry.WriteOptions{}), engine.ErrConflict, "of the future")
	require.ErrorIs(t, update(func(w *Widget) { w.UID = "other" }, registry.WriteOptions{}), engine.ErrConflict)
	require.ErrorIs(t, update(nothing, registry.WriteOptions{UID: "other"}), engine.ErrConflict)
	require.ErrorIs(t, update(nothing, registry.WriteOptions{Revision: o.Revision}), engine.ErrConflict)
	require.NoError(t, update(nothing, registry.WriteOptions{UID: string(o.Value.UID)}))
	require.ErrorAs(t, update(func(w *Widget) { w.ResourceVersion = "abc" }, registry.WriteOptions{}), new(*registry.BadRequestError))
	require.ErrorAs(t, update(func(w *Widget) { w.Name = "b" }, registry.WriteOptions{}), new(*registry.BadRequestError))
	_, _, err := s.Update(t.Context(), "default/none", grow(1), registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

func TestUpdate_RefusesToCallNil(t *testing.T) {
	cfg := config()
	cfg.Kind.Status = true
	replica, _ := replicaOf(t, cfg)
	for _, s := range []*registry.Store[Widget]{newStore(t, cfg), replica} {
		_, _, err := s.Update(t.Context(), "default/a", nil, registry.WriteOptions{})
		require.ErrorIs(t, err, engine.ErrConfig)
		require.ErrorContains(t, err, "change is nil")
		_, err = s.UpdateStatus(t.Context(), "default/a", nil, registry.WriteOptions{})
		require.ErrorIs(t, err, engine.ErrConfig)
	}
}

// The store restores what a writer may not change. The kind's Prepare comes after that, so it is refused.
func TestUpdate_RulesCannotChangeWhatIdentifiesTheObject(t *testing.T) {
	for name, change := range map[string]func(*Widget){
		"metadata.uid":               func(w *Widget) { w.UID = "another" },
		"metadata.creationTimestamp": func(w *Widget) { w.CreationTimestamp = metav1.Unix(1, 0) },
		"metadata.deletionTimestamp": func(w *Widget) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
	} {
		cfg := config()
		cfg.Strategy.Prepare = func(_ context.Context, w, old *Widget) {
			if old != nil {
				change(w)
			}
		}
		s := newStore(t, cfg)
		o := create(t, s, widget("a", 1))
		_, _, err := s.Update(t.Context(), o.Key, grow(1), registry.WriteOptions{})
		var invalid *registry.InvalidError
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, name, invalid.Errors[0].Field)
		now, err := s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
		require.NoError(t, err)
		require.Same(t, o, now)
	}
}

func TestUpdate_RevisionCanBeRequired(t *testing.T) {
	cfg := config()
	cfg.Strategy.RevisionRequired = true
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	put := func(revision string) error {
		_, _, err := s.Resources()[0].Update(t.Context(), o.Key, func(registry.Item) ([]byte, error) {
			return fmt.Appendf(nil, `{"metadata":{"name":"a","resourceVersion":%q},"spec":{"size":2}}`, revision), nil
		}, registry.WriteOptions{})
		return err
	}
	for _, none := range []string{"", "0"} {
		var invalid *registry.InvalidError
		require.ErrorAs(t, put(none), &invalid)
		require.Equal(t, "metadata.resourceVersion", invalid.Errors[0].Field)
		require.Contains(t, invalid.Errors[0].Detail, "must be specified for an update")
	}
	require.NoError(t, put(o.Revision.String()))
	_, _, err := s.Update(t.Context(), o.Key, grow(1), registry.WriteOptions{})
	require.NoError(t, err, "the function has read the object")
}

func TestUpdate_ConcurrentOnesAllApply(t *testing.T) {
	s := newStore(t, config())
	o := create(t, s, widget("a", 0))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 25 {
				if _, _, err := s.Update(t.Context(), o.Key, grow(1), registry.WriteOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	last, err := s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, 200, last.Value.Spec.Size)
	require.EqualValues(t, 201, last.Value.Generation)
}

// A write of another form of what is stored changes nothing, and is not stored.
func TestUpdate_OfTheSameCanonicalFormIsNone(t *testing.T) {
	s := newStore(t, config())
	w := widget("a", 1)
	w.Spec.Color = "RED"
	before := create(t, s, w)
	paint := func(color string) *engine.Object[Widget] {
		o, _, err := s.Update(t.Context(), before.Key, func(old *engine.Object[Widget]) (Widget, error) {
			next := old.Value
			next.Spec.Color = color
			return next, nil
		}, registry.WriteOptions{})
		require.NoError(t, err)
		return o
	}
	require.Equal(t, before.Revision, paint("Red").Revision)
	require.EqualValues(t, 2, paint("Blue").Value.Generation)
}

// A later version of the program may canonicalize what an earlier one has stored.
func TestUpdate_ThatStoresAnotherCanonicalFormIsAGeneration(t *testing.T) {
	storage, err := memory.New(registry.Schema(config()), memory.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	before, after := config(), config()
	before.Strategy.Canonicalize = nil
	before.Engine.Backend, after.Engine.Backend = storage, storage
	w := widget("a", 1)
	w.Spec.Color = "RED"
	create(t, newStore(t, before), w)
	s := newStore(t, after)
	for range 2 {
		o, _, err := s.Update(t.Context(), "default/a", grow(0), registry.WriteOptions{})
		require.NoError(t, err)
		require.Equal(t, "red", o.Value.Spec.Color)
		require.EqualValues(t, 2, o.Value.Generation)
	}
}

func TestUpdate_CreatesIfTheKindDoes(t *testing.T) {
	cfg := config()
	cfg.Strategy.CreateOnUpdate = true
	s := newStore(t, cfg)
	put := func(old *engine.Object[Widget]) (Widget, error) {
		if old != nil {
			return old.Value, nil
		}
		w := widget("a", 3)
		w.Namespace = ""
		return w, nil
	}
	o, created, err := s.Update(t.Context(), "default/a", put, registry.WriteOptions{})
	require.NoError(t, err)
	require.True(t, created)
	require.Len(t, string(o.Value.UID), 36)
	_, created, err = s.Update(t.Context(), "default/a", put, registry.WriteOptions{})
	require.NoError(t, err)
	require.False(t, created)
	_, _, err = s.Update(t.Context(), "default/b", put, registry.WriteOptions{UID: "someone"})
	require.ErrorIs(t, err, engine.ErrConflict)
	_, created, err = s.Update(t.Context(), "default/b", put, registry.WriteOptions{})
	require.ErrorAs(t, err, new(*registry.BadRequestError), "a is not b")
	require.False(t, created)
}

// An update that names an object by its uid does not create another one in its place.
func TestUpdate_OfAnObjectThatIsGoneCreatesNone(t *testing.T) {
	cfg := config()
	cfg.Strategy.CreateOnUpdate = true
	s := newStore(t, cfg)
	before := create(t, s, widget("a", 1))
	_, _, err := s.Delete(t.Context(), before.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	_, _, err = s.Update(t.Context(), before.Key, func(*engine.Object[Widget]) (Widget, error) { return before.Value, nil }, registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrConflict)
	require.ErrorContains(t, err, string(before.Value.UID))
	_, _, err = s.Update(t.Context(), before.Key, func(*engine.Object[Widget]) (Widget, error) {
		w := widget("a", 1)
		w.ResourceVersion = before.Revision.String()
		return w, nil
	}, registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrConflict)
	_, err = s.Engine().Get(t.Context(), before.Key, engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// A kind's type may have fields whose own fields are not exported, as a time.Time has.
func TestUpdate_OfAKindWithTimes(t *testing.T) {
	type alarm struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		At                time.Time `json:"at"`
	}
	s, err := registry.New(registry.Config[alarm]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Alarm"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	at := time.Unix(1_000_000_000, 0)
	before, err := s.Create(t.Context(), alarm{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, At: at}, registry.WriteOptions{})
	require.NoError(t, err)
	set := func(to time.Time) *engine.Object[alarm] {
		o, _, err := s.Update(t.Context(), before.Key, func(old *engine.Object[alarm]) (alarm, error) {
			next := old.Value
			next.At = to
			return next, nil
		}, registry.WriteOptions{})
		require.NoError(t, err)
		return o
	}
	require.Equal(t, before.Revision, set(at.UTC()).Revision, "it is the same time")
	after := set(at.Add(time.Hour))
	require.Greater(t, after.Revision, before.Revision)
	require.EqualValues(t, 2, after.Value.Generation)
}

// Clients of two versions that write what is there already would wake each other for ever.
func TestUpdate_OfTheSameInAnotherVersionWritesNothing(t *testing.T) {
	v1, v2 := config(), config()
	v2.Kind.Version = "v2"
	storage, err := memory.New(registry.Schema(v1), memory.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	v1.Engine.Backend, v2.Engine.Backend, v2.StorageVersion = storage, storage, "v1"
	first, second := newStore(t, v1), newStore(t, v2)
	written := create(t, first, widget("a", 1))
	keep := func(old *engine.Object[Widget]) (Widget, error) { return old.Value, nil }
	o, _, err := second.Update(t.Context(), written.Key, keep, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, written.Revision, o.Revision)
	o, _, err = second.Update(t.Context(), written.Key, func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Spec.Size = 2
		return w, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.Greater(t, o.Revision, written.Revision)
	require.Equal(t, 2, o.Value.Spec.Size)
}
