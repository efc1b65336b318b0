package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func finalized(name string) Widget {
	w := widget(name, 1)
	w.Finalizers = []string{"example.com/cleanup"}
	return w
}

func setFinalizers(names ...string) func(*engine.Object[Widget]) (Widget, error) {
	return func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Finalizers = names
		return w, nil
	}
}

func TestDelete_AtOnceWithoutFinalizers(t *testing.T) {
	s := newStore(t, config())
	o := create(t, s, widget("a", 1))
	last, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, gone)
	require.Equal(t, 1, last.Value.Spec.Size)
	require.Greater(t, last.Revision, o.Revision)
	_, _, err = s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

func TestDelete_FinalizersKeepTheObjectUntilTheLastIsGone(t *testing.T) {
	s := newStore(t, config())
	o := create(t, s, finalized("a"))
	w, err := s.Engine().Watch(t.Context(), engine.WatchOptions{From: o.Revision})
	require.NoError(t, err)
	marked, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.False(t, gone)
	require.NotNil(t, marked.Value.DeletionTimestamp)
	require.Zero(t, *marked.Value.DeletionGracePeriodSeconds)
	require.EqualValues(t, 2, marked.Value.Generation)

	again, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.False(t, gone)
	require.Equal(t, marked.Revision, again.Revision, "a second deletion changes nothing")

	_, _, err = s.Update(t.Context(), o.Key, setFinalizers("example.com/cleanup", "example.com/more"), registry.WriteOptions{})
	require.ErrorAs(t, err, new(*registry.InvalidError), "no new finalizers")

	last, _, err := s.Update(t.Context(), o.Key, setFinalizers(), registry.WriteOptions{})
	require.NoError(t, err)
	require.Empty(t, last.Value.Finalizers)
	_, err = s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)

	var types []engine.EventType
	for ev := range w.Events() {
		types = append(types, ev.Type)
		if ev.Type == engine.Deleted {
			require.Equal(t, last.Revision, ev.Revision)
			break
		}
	}
	require.Equal(t, []engine.EventType{engine.Modified, engine.Deleted}, types)
}

func TestDelete_Preconditions(t *testing.T) {
	s := newStore(t, config())
	for _, w := range []Widget{widget("plain", 1), finalized("kept")} {
		o := create(t, s, w)
		for _, opts := range []registry.DeleteOptions{{UID: "other"}, {Revision: o.Revision + 1}} {
			_, _, err := s.Delete(t.Context(), o.Key, opts)
			require.ErrorIs(t, err, engine.ErrConflict)
		}
		_, _, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{UID: string(o.Value.UID), Revision: o.Revision})
		require.NoError(t, err)
	}
	_, _, err := s.Delete(t.Context(), "default/kept", registry.DeleteOptions{Propagation: "Sideways"})
	require.ErrorAs(t, err, new(*registry.BadRequestError))
}

// halfAMinute is the grace period of kinds that have one, unless a deletion asks for another.
func halfAMinute(_ *Widget, asked *int64) (int64, bool) {
	if asked != nil {
		return *asked, true
	}
	return 30, true
}

func TestDelete_WithGrace(t *testing.T) {
	cfg := config()
	cfg.Strategy.Grace = halfAMinute
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	marked, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.False(t, gone)
	require.EqualValues(t, 30, *marked.Value.DeletionGracePeriodSeconds)
	updated, _, err := s.Update(t.Context(), o.Key, grow(1), registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, 2, updated.Value.Spec.Size, "it can be updated while it is being deleted")

	longer, shorter, none := int64(60), int64(5), int64(0)
	same, _, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{GracePeriodSeconds: &longer})
	require.NoError(t, err)
	require.EqualValues(t, 30, *same.Value.DeletionGracePeriodSeconds)
	sooner, _, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{GracePeriodSeconds: &shorter})
	require.NoError(t, err)
	require.EqualValues(t, 5, *sooner.Value.DeletionGracePeriodSeconds)
	require.True(t, sooner.Value.DeletionTimestamp.Before(marked.Value.DeletionTimestamp))
	for _, dryRun := range []bool{true, false} {
		last, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{GracePeriodSeconds: &none, DryRun: dryRun})
		require.NoError(t, err)
		require.True(t, gone)
		require.Zero(t, *last.Value.DeletionGracePeriodSeconds, "nothing is left of the grace period")
		require.True(t, last.Value.DeletionTimestamp.Before(sooner.Value.DeletionTimestamp))
		require.Equal(t, 2, last.Value.Spec.Size)
		require.Equal(t, o.Key, last.Key)
	}
	require.EqualValues(t, 5, *sooner.Value.DeletionGracePeriodSeconds, "states are not changed")
}

// A shorter grace period counts from the first deletion. Its end is never in the past, and one
// that is over leaves a second.
func TestDelete_ShorterGraceCountsFromTheFirstDeletion(t *testing.T) {
	at := clock.NewVirtual(time.Unix(1_000_000_000, 0))
	host, err := engine.NewHost(engine.HostConfig{Clock: at})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	cfg := config()
	cfg.Engine.Host = host
	cfg.Strategy.Grace = func(_ *Widget, asked *int64) (int64, bool) { return *asked, true }
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	for _, step := range []struct {
		grace, left, ends int64
		gone              bool
	}{{60, 60, 60, false}, {30, 30, 30, false}, {10, 1, 50, false}, {0, 0, 75, true}} {
		o, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{GracePeriodSeconds: &step.grace})
		require.NoError(t, err)
		require.Equal(t, step.gone, gone)
		require.Equal(t, 1_000_000_000+step.ends, o.Value.DeletionTimestamp.Unix())
		require.Equal(t, step.left, *o.Value.DeletionGracePeriodSeconds)
		at.Advance(25 * time.Second)
	}
}

// Only a deletion that asks for a period shortens that of an object that is being deleted.
func TestDelete_AgainKeepsTheGraceUnlessAskedForLess(t *testing.T) {
	cfg := config()
	cfg.Strategy.Grace = halfAMinute
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	long := int64(3600)
	marked, _, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{GracePeriodSeconds: &long})
	require.NoError(t, err)
	again, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.False(t, gone)
	require.Equal(t, marked.Revision, again.Revision)
	require.Equal(t, long, *again.Value.DeletionGracePeriodSeconds)
}

// What Strategy.Grace returns counts only if it says that there is a period.
func TestDelete_AtOnceWithoutAPeriodOfGrace(t *testing.T) {
	for name, grace := range map[string]func(*Widget, *int64) (int64, bool){
		"none":     func(*Widget, *int64) (int64, bool) { return 30, false },
		"zero":     func(*Widget, *int64) (int64, bool) { return 0, true },
		"negative": func(*Widget, *int64) (int64, bool) { return -1, true },
	} {
		cfg := config()
		cfg.Strategy.Grace = grace
		s := newStore(t, cfg)
		o := create(t, s, widget("a", 1))
		_, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
		require.NoError(t, err, name)
		require.True(t, gone, name)
	}
}

// An object that nothing keeps any more when it is to be marked is deleted: nothing would delete
// it afterwards.
func TestDelete_WhatKeepsTheObjectMayEndMeanwhile(t *testing.T) {
	cfg, asked := config(), 0
	cfg.Strategy.Grace = func(*Widget, *int64) (int64, bool) {
		asked++
		return 30, asked == 1
	}
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	_, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, gone)
	_, err = s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// An object that finalizers keep is not marked by a dry run, nor if an admitter refuses.
func TestDelete_OfAKeptObjectIsAdmittedFirst(t *testing.T) {
	cfg, refused := config(), errors.New("not today")
	cfg.Admit = []registry.Admitter{registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
		if a.Operation == registry.OperationDelete && !a.DryRun {
			return refused
		}
		return nil
	})}
	s := newStore(t, cfg)
	o := create(t, s, finalized("a"))
	marked, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{DryRun: true})
	require.NoError(t, err)
	require.False(t, gone)
	require.NotNil(t, marked.Value.DeletionTimestamp)
	require.Equal(t, o.Revision, marked.Revision)
	_, _, err = s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.ErrorIs(t, err, refused)
	_, err = s.DeleteCollection(t.Context(), engine.ListOptions{}, registry.DeleteOptions{})
	require.ErrorIs(t, err, refused)
	now, err := s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, o.Revision, now.Revision)
	require.Nil(t, now.Value.DeletionTimestamp)
}

func TestDelete_NegativeGraceIsOneSecond(t *testing.T) {
	cfg := config()
	cfg.Strategy.Grace = func(_ *Widget, asked *int64) (int64, bool) { return *asked, true }
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	negative := int64(-5)
	marked, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{GracePeriodSeconds: &negative})
	require.NoError(t, err)
	require.False(t, gone)
	require.EqualValues(t, 1, *marked.Value.DeletionGracePeriodSeconds)
}

func TestDelete_LongGracePeriodDoesNotOverflow(t *testing.T) {
	cfg := config()
	cfg.Strategy.Grace = func(_ *Widget, asked *int64) (int64, bool) { return *asked, true }
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	ages := int64(10_000_000_000) // as a time.Duration, it would overflow to one in the past
	marked, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{GracePeriodSeconds: &ages})
	require.NoError(t, err)
	require.False(t, gone)
	require.Equal(t, ages, *marked.Value.DeletionGracePeriodSeconds)
	require.True(t, marked.Value.DeletionTimestamp.After(o.Value.CreationTimestamp.Time))
}

// An object that another system has marked may have no grace period, and is given none.
func TestDelete_OfAMarkWithoutAGracePeriodAddsNone(t *testing.T) {
	cfg := config()
	cfg.Strategy.Grace = func(*Widget, *int64) (int64, bool) { return 30, true }
	s := newStore(t, cfg)
	marked := func(w Widget) *engine.Object[Widget] {
		w.Namespace, w.DeletionTimestamp = "default", &metav1.Time{Time: time.Unix(1_000_000_000, 0)}
		o, err := s.Engine().Create(t.Context(), w)
		require.NoError(t, err)
		return o
	}
	period := int64(5)
	for _, opts := range []registry.DeleteOptions{{}, {GracePeriodSeconds: &period}} {
		held := marked(finalized("a"))
		same, gone, err := s.Delete(t.Context(), held.Key, opts)
		require.NoError(t, err)
		require.False(t, gone)
		require.Equal(t, held.Revision, same.Revision)
		last, _, err := s.Update(t.Context(), held.Key, setFinalizers(), registry.WriteOptions{})
		require.NoError(t, err)
		require.Nil(t, last.Value.DeletionGracePeriodSeconds)
		_, err = s.Engine().Get(t.Context(), held.Key, engine.GetOptions{})
		require.ErrorIs(t, err, engine.ErrNotFound)

		_, gone, err = s.Delete(t.Context(), marked(widget("b", 1)).Key, opts)
		require.NoError(t, err)
		require.True(t, gone)
	}
}

// The last state has the creation, the labels and the fields of the object, whichever write deletes it.
func TestDelete_ReturnsAWholeLastState(t *testing.T) {
	cfg := config()
	cfg.Strategy.Grace = func(_ *Widget, asked *int64) (int64, bool) { return *asked, true }
	s := newStore(t, cfg)
	period, none := int64(30), int64(0)
	for name, remove := range map[string]func(key string) (*engine.Object[Widget], error){
		"deletion": func(key string) (*engine.Object[Widget], error) {
			o, _, err := s.Delete(t.Context(), key, registry.DeleteOptions{GracePeriodSeconds: &none})
			return o, err
		},
		"end of the period": func(key string) (*engine.Object[Widget], error) {
			if _, _, err := s.Delete(t.Context(), key, registry.DeleteOptions{GracePeriodSeconds: &period}); err != nil {
				return nil, err
			}
			o, _, err := s.Delete(t.Context(), key, registry.DeleteOptions{GracePeriodSeconds: &none})
			return o, err
		},
		"update": func(key string) (*engine.Object[Widget], error) {
			if _, _, err := s.Update(t.Context(), key, setFinalizers("example.com/wait"), registry.WriteOptions{}); err != nil {
				return nil, err
			}
			if _, _, err := s.Delete(t.Context(), key, registry.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
				return nil, err
			}
			o, _, err := s.Update(t.Context(), key, setFinalizers(), registry.WriteOptions{})
			return o, err
		},
	} {
		w := widget("a", 1)
		w.Labels = map[string]string{"app": "web"}
		o := create(t, s, w)
		last, err := remove(o.Key)
		require.NoError(t, err, name)
		require.Equal(t, o.Created, last.Created, name)
		require.Equal(t, "web", last.Labels.Get("app"), name)
		require.Equal(t, o.Fields, last.Fields, name)
		require.False(t, last.Written.IsZero(), name)
		require.Greater(t, last.Revision, o.Revision, name)
		_, err = s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
		require.ErrorIs(t, err, engine.ErrNotFound, name)
	}
}

// The mark makes the object larger, perhaps too large for storage.
func TestDelete_MarksAnObjectThatIsTooLargeWithoutItsManagedFields(t *testing.T) {
	cfg := config()
	schema := registry.Schema(cfg)
	stored, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	storage := faulty.New(stored, faulty.Options{})
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	cfg.Engine.Backend = storage
	s := newStore(t, cfg)
	o := finalized("a")
	o.Namespace, o.ManagedFields = "default", []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("one", 100)}}
	_, err = s.Engine().Create(t.Context(), o)
	require.NoError(t, err)
	size := func(o *store.Object) int {
		text, err := json.Marshal(schema.Pointer(o))
		require.NoError(t, err)
		return len(text)
	}
	there, err := storage.Get(t.Context(), "default/a")
	require.NoError(t, err)
	limit, refused := size(there), 0
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpPut}, Do: func(_ context.Context, c *faulty.Call, proceed func()) {
		if got := size(c.Draft); got > limit {
			refused++
			c.Err = &backend.TooLargeError{Size: got, Limit: limit}
			return
		}
		proceed()
	}})
	marked, gone, err := s.Delete(t.Context(), "default/a", registry.DeleteOptions{})
	require.NoError(t, err)
	require.False(t, gone)
	require.NotNil(t, marked.Value.DeletionTimestamp)
	require.Empty(t, marked.Value.ManagedFields)
	require.Equal(t, 1, refused)
}
