package remote_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/remote"
)

func withApply(c *registry.Config[Widget]) { c.Apply = apply.New }

func withScale(c *registry.Config[Widget]) {
	c.Scale = &registry.Scale[Widget]{
		Replicas:    func(w *Widget) (int32, bool) { return int32(w.Spec.Size), true },
		SetReplicas: func(w *Widget, n int32) { w.Spec.Size = int(n) },
	}
}

// An apply at a replica is the origin's, with the manager that it names.
func TestReplica_PassesAppliesOn(t *testing.T) {
	origin := newServer(t, withApply)
	r := replica(t, origin.url)
	say := func(manager, body string, edit ...func(*registry.WriteOptions)) (*engine.Object[Widget], bool, error) {
		opts := registry.WriteOptions{Manager: manager}
		for _, e := range edit {
			e(&opts)
		}
		return r.store.Apply(t.Context(), "default/a", []byte(`{"apiVersion":"example.com/v1","kind":"Widget",`+body+`}`), opts)
	}
	o, created, err := say("one", `"spec":{"size":1}`)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, "one", o.Value.ManagedFields[0].Manager)
	require.Zero(t, r.validated.Load(), "rules run once, at the origin")
	_, _, err = say("two", `"spec":{"size":2}`)
	var conflict *registry.FieldConflictError
	require.ErrorAs(t, err, &conflict)
	require.ErrorIs(t, err, engine.ErrConflict)
	require.Equal(t, []registry.FieldConflict{{Field: ".spec.size", Message: `conflict with "one"`}}, conflict.Conflicts)
	o, created, err = say("two", `"spec":{"size":2}`, func(o *registry.WriteOptions) { o.Force = true })
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, 2, o.Value.Spec.Size)
	o, err = r.store.ApplyStatus(t.Context(), "default/a", []byte(`{apiVersion: example.com/v1, kind: Widget, status: {phase: Up}}`), registry.WriteOptions{Manager: "two"})
	require.NoError(t, err)
	require.Equal(t, "Up", o.Value.Status.Phase)
	o, _, err = r.store.Update(t.Context(), "default/a", func(old *engine.Object[Widget]) (Widget, error) {
		next := old.Value
		next.Spec.Size = 3
		return next, nil
	}, registry.WriteOptions{Manager: "editor"})
	require.NoError(t, err)
	require.Contains(t, managers(o), "editor")
	_, _, err = say("one", `"spec":{}`, func(o *registry.WriteOptions) { o.UID = "other" })
	require.ErrorIs(t, err, engine.ErrConflict)
	require.False(t, errors.As(err, &conflict))

	plain := newServer(t)
	_, _, err = replica(t, plain.url).store.Apply(t.Context(), "default/a", []byte(`{}`), registry.WriteOptions{Manager: "one"})
	require.ErrorContains(t, err, "415", "the origin has none")
}

// An apply of a scale at a replica is the origin's, too.
func TestReplica_PassesAppliesOfScalesOn(t *testing.T) {
	origin := newServer(t, withApply, withScale)
	b := backendAt(t, origin.url)
	r := newServer(t, withScale, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend = b })
	scale := r.store.Resources()[2]
	config := []byte(`{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":3}}`)
	_, _, err := scale.Apply(t.Context(), "default/a", config, registry.WriteOptions{Manager: "scaler"})
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, err = origin.store.Create(t.Context(), widget("a", 1), registry.WriteOptions{Manager: "one"})
	require.NoError(t, err)
	_, _, err = scale.Apply(t.Context(), "default/a", config, registry.WriteOptions{Manager: "scaler"})
	var conflict *registry.FieldConflictError
	require.ErrorAs(t, err, &conflict)
	it, created, err := scale.Apply(t.Context(), "default/a", config, registry.WriteOptions{Manager: "scaler", Force: true})
	require.NoError(t, err)
	require.False(t, created)
	text, err := it.JSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"spec":{"replicas":3}`)
	_, _, err = scale.Apply(t.Context(), "default/a", config, registry.WriteOptions{Manager: "scaler", UID: "other"})
	require.ErrorIs(t, err, engine.ErrConflict)
	o, err := origin.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.NoError(t, err)
	require.Contains(t, managers(o), "scaler")
}

// A replica's origin knows the replica, and not its clients: the replica asks whether one may
// create the object, and whether that object is meant.
func TestReplica_AppliesAskBeforeTheyCreate(t *testing.T) {
	r := replica(t, newServer(t, withApply).url)
	refused, asked := errors.New("not you"), 0
	say := func(edit func(*registry.WriteOptions)) (bool, error) {
		opts := registry.WriteOptions{Manager: "one", MayCreate: func(context.Context) error {
			asked++
			return refused
		}}
		edit(&opts)
		_, created, err := r.store.Apply(t.Context(), "default/a", []byte(`{"apiVersion":"example.com/v1","kind":"Widget"}`), opts)
		return created, err
	}
	_, err := say(func(*registry.WriteOptions) {})
	require.ErrorIs(t, err, refused)
	require.Equal(t, 1, asked)
	_, err = say(func(o *registry.WriteOptions) { o.MayCreate, o.Revision = nil, 7 })
	var conflict *registry.ConflictError
	require.ErrorAs(t, err, &conflict, "there is no object in that state")
	_, err = say(func(o *registry.WriteOptions) { o.Revision = 7 })
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, 1, asked, "it would create another object")
	config := []byte(`{"apiVersion":"example.com/v1","kind":"Widget"}`)
	_, _, err = r.store.Resources()[1].Apply(t.Context(), "default/a", config, registry.WriteOptions{Manager: "one", MayCreate: func(context.Context) error {
		asked++
		return nil
	}})
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.Equal(t, 1, asked, "an apply of a status creates nothing")
	refused = nil
	created, err := say(func(*registry.WriteOptions) {})
	require.NoError(t, err)
	require.True(t, created)
	refused = errors.New("not you")
	created, err = say(func(*registry.WriteOptions) {})
	require.NoError(t, err, "it is there")
	require.False(t, created)
	require.Equal(t, 3, asked, "it may be gone when the apply is at the origin")
	_, err = say(func(o *registry.WriteOptions) { o.MayCreate, o.Revision = nil, 7 })
	require.ErrorIs(t, err, engine.ErrConflict)
}

// So it does before an update that may create the object: the object may be gone by the time that
// the update is at the origin. A write of the status creates none.
func TestReplica_UpdatesAskBeforeTheyCreate(t *testing.T) {
	creates := func(cfg *registry.Config[Widget]) { cfg.Strategy.CreateOnUpdate = true }
	b := backendAt(t, newServer(t, creates).url)
	r := newServer(t, creates, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend = b })
	refused := errors.New("not you")
	opts := registry.WriteOptions{MayCreate: func(context.Context) error { return refused }}
	put := func(old *engine.Object[Widget]) (Widget, error) { return widget("a", 1), nil }
	_, _, err := r.store.Update(t.Context(), "default/a", put, opts)
	require.ErrorIs(t, err, refused)
	_, err = r.store.UpdateStatus(t.Context(), "default/a", func(old *engine.Object[Widget]) (Widget, error) { return old.Value, nil }, opts)
	require.ErrorIs(t, err, engine.ErrNotFound)
	refused = nil
	named := opts
	named.UID = "of another"
	_, _, err = r.store.Update(t.Context(), "default/a", put, named)
	require.ErrorIs(t, err, engine.ErrConflict, "as at the origin")
	_, err = r.store.UpdateStatus(t.Context(), "default/a", func(old *engine.Object[Widget]) (Widget, error) { return old.Value, nil }, named)
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, created, err := r.store.Update(t.Context(), "default/a", put, opts)
	require.NoError(t, err)
	require.True(t, created)
}

// The function is told that there is no object, so what it returns must not replace one that has come
// meanwhile, or that the replica does not select.
func TestReplica_UpdatesThatCreateReplaceNothing(t *testing.T) {
	creates := func(cfg *registry.Config[Widget]) { cfg.Strategy.CreateOnUpdate = true }
	origin := newServer(t, creates)
	r := newServer(t, creates, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend = backendAt(t, origin.url) })
	var seen []int
	take := func(old *engine.Object[Widget]) (Widget, error) {
		if old != nil {
			seen = append(seen, old.Value.Spec.Size)
			return old.Value, nil
		}
		seen = append(seen, 0)
		if len(seen) == 1 {
			origin.create("a", 7)
		}
		return widget("a", 1), nil
	}
	o, created, err := r.store.Update(t.Context(), "default/a", take, registry.WriteOptions{})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, 7, o.Value.Spec.Size)
	require.Equal(t, []int{0, 7}, seen)

	part := newServer(t, creates, func(cfg *registry.Config[Widget]) {
		cfg.Engine.Backend = backendAt(t, origin.url, func(c *remote.Config) { c.Labels = "part=yes" })
	})
	_, _, err = part.store.Update(t.Context(), "default/a", take, registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrExists)
	there, err := origin.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, 7, there.Value.Spec.Size)
}

func managers(o *engine.Object[Widget]) (names []string) {
	for _, e := range o.Value.ManagedFields {
		names = append(names, e.Manager)
	}
	return names
}
