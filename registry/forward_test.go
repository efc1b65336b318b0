package registry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// origin is the backend of a replica: it passes writes on to a store over the same storage, and
// calls before each update.
type origin struct {
	backend.Backend
	store  *registry.Store[Widget]
	before func()
}

func (o *origin) ForwardCreate(ctx context.Context, namespace string, body []byte, opts registry.WriteOptions) ([]byte, error) {
	it, err := o.store.Resources()[0].Create(ctx, namespace, body, opts)
	if err != nil {
		return nil, err
	}
	return it.JSON()
}

func (o *origin) ForwardUpdate(ctx context.Context, key, _ string, body []byte, opts registry.WriteOptions) ([]byte, bool, error) {
	o.before()
	opts.MayCreate = nil // the origin knows the replica, and not its users
	it, created, err := o.store.Resources()[0].Update(ctx, key, func(registry.Item) ([]byte, error) { return body, nil }, opts)
	if err != nil {
		return nil, false, err
	}
	answer, err := it.JSON()
	return answer, created, err
}

func (o *origin) ForwardDelete(context.Context, string, registry.DeleteOptions) ([]byte, engine.Revision, error) {
	return nil, 0, engine.ErrUnsupported
}

// replicaOf returns a replica, and its origin.
func replicaOf(t *testing.T, cfg registry.Config[Widget]) (*registry.Store[Widget], *origin) {
	t.Helper()
	storage, err := memory.New(registry.Schema(cfg), memory.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	cfg.Engine.Backend = storage
	o := &origin{Backend: storage, store: newStore(t, cfg), before: func() {}}
	cfg.Engine.Backend = o
	return newStore(t, cfg), o
}

// The object changes before each attempt. One that names an older state of it never fits.
func TestReplica_PassesAnUpdateOfAnotherStateOnOnce(t *testing.T) {
	patch := func(text string) func(*registry.Store[Widget], context.Context) error {
		return func(s *registry.Store[Widget], ctx context.Context) error {
			p, err := registry.ParsePatch(registry.MergePatch, []byte(text))
			if err != nil {
				return err
			}
			_, _, err = s.Resources()[0].Update(ctx, "default/a", func(live registry.Item) ([]byte, error) {
				now, err := live.JSON()
				if err != nil {
					return nil, err
				}
				return p.Apply(now)
			}, registry.WriteOptions{})
			return err
		}
	}
	for name, update := range map[string]func(*registry.Store[Widget], context.Context) error{
		"a patch with a resourceVersion": patch(`{"metadata":{"resourceVersion":"1"},"spec":{"color":"red"}}`),
		"a patch with a uid":             patch(`{"metadata":{"uid":"another"},"spec":{"color":"red"}}`),
		"a value with a resourceVersion": func(s *registry.Store[Widget], ctx context.Context) error {
			_, _, err := s.Update(ctx, "default/a", func(old *engine.Object[Widget]) (Widget, error) {
				w := old.Value
				w.ResourceVersion = "1"
				return w, nil
			}, registry.WriteOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := replicaOf(t, config())
			create(t, o.store, widget("a", 1))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			updates := 0
			o.before = func() {
				if updates++; updates == 10 {
					cancel()
				}
				_, _, err := o.store.Update(t.Context(), "default/a", grow(1), registry.WriteOptions{})
				require.NoError(t, err)
			}
			require.ErrorIs(t, update(s, ctx), engine.ErrConflict)
			require.Equal(t, 1, updates)
		})
	}
}

// Another write comes between the read and the first attempts of an update that names no state.
func TestReplica_PassesAnUpdateOfTheLiveObjectOnAgain(t *testing.T) {
	s, o := replicaOf(t, config())
	create(t, o.store, widget("a", 1))
	updates := 0
	o.before = func() {
		if updates++; updates < 4 {
			_, _, err := o.store.Update(t.Context(), "default/a", grow(1), registry.WriteOptions{})
			require.NoError(t, err)
		}
	}
	for _, update := range []func() error{
		func() error {
			_, _, err := s.Update(t.Context(), "default/a", grow(10), registry.WriteOptions{})
			return err
		},
		func() error {
			_, err := patchA(t, s.Resources()[0], registry.MergePatch, `{"spec":{"color":"red"}}`)
			return err
		},
	} {
		updates = 0
		require.NoError(t, update())
		require.Equal(t, 4, updates)
	}
	last, err := o.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, WidgetSpec{Size: 17, Color: "red"}, last.Value.Spec)
}

// The object may be gone when the update comes, and the kind create what is not there.
func TestReplica_PassesAnUpdateOfAnObjectThatIsGoneOnOnce(t *testing.T) {
	cfg := config()
	cfg.Strategy.CreateOnUpdate = true
	s, o := replicaOf(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	updates := 0
	o.before = func() {
		if updates++; updates == 10 {
			cancel()
		}
	}
	_, _, err := s.Resources()[0].Update(ctx, "default/a", func(registry.Item) ([]byte, error) {
		return fmt.Appendf(nil, `{"metadata":{"name":"a","uid":"gone","annotations":{"attempt":"%d"}},"spec":{"size":1}}`, updates), nil
	}, registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrConflict)
	require.Equal(t, 1, updates)
}

// ForwardApply has the store apply a configuration.
func (o *origin) ForwardApply(ctx context.Context, key, _ string, config []byte, opts registry.WriteOptions) ([]byte, bool, error) {
	o.before()
	opts.MayCreate = nil // the origin knows the replica, and not its users
	it, created, err := o.store.Resources()[0].Apply(ctx, key, config, opts)
	if err != nil {
		return nil, false, err
	}
	answer, err := it.JSON()
	return answer, created, err
}

// The object is deleted between the replica's look at it and the apply.
func TestReplica_AnApplyCreatesOnlyForThoseThatMay(t *testing.T) {
	for _, refused := range []error{errors.New("not you"), nil} {
		cfg := config()
		cfg.Apply = apply.New
		s, o := replicaOf(t, cfg)
		create(t, o.store, widget("a", 1))
		o.before = func() {
			_, _, err := o.store.Delete(t.Context(), "default/a", registry.DeleteOptions{})
			require.NoError(t, err)
		}
		_, created, err := s.Apply(t.Context(), "default/a", []byte(`{"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":2}}`), registry.WriteOptions{
			Manager: "one", MayCreate: func(context.Context) error { return refused },
		})
		require.Equal(t, refused == nil, created)
		if refused != nil {
			require.ErrorIs(t, err, engine.ErrConflict)
			_, err = o.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
			require.ErrorIs(t, err, engine.ErrNotFound)
		}
	}
}

// creatingReplica returns a replica, which creates by updates or does not, of a server that does, with an object.
func creatingReplica(t *testing.T, creates bool) (*registry.Store[Widget], *origin) {
	t.Helper()
	cfg := config()
	cfg.Strategy.CreateOnUpdate = true
	_, o := replicaOf(t, cfg)
	create(t, o.store, widget("a", 1))
	cfg.Strategy.CreateOnUpdate = creates
	cfg.Engine.Backend = o
	return newStore(t, cfg), o
}

// putA replaces the object by one that does not say which it replaces, for a writer that may not create.
func putA(t *testing.T, s *registry.Store[Widget], refused error) error {
	t.Helper()
	_, created, err := s.Resources()[0].Update(t.Context(), "default/a", func(registry.Item) ([]byte, error) {
		return []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":2}}`), nil
	}, registry.WriteOptions{MayCreate: func(context.Context) error { return refused }})
	require.False(t, created)
	return err
}

// As at the server, one that creates nothing needs not be allowed to.
func TestReplica_AnUpdateThatCreatesNothingNeedsNoRightToCreate(t *testing.T) {
	for _, creates := range []bool{true, false} {
		s, o := creatingReplica(t, creates)
		require.NoError(t, putA(t, s, errors.New("not you")))
		now, err := o.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, 2, now.Value.Spec.Size)
	}
}

// The object is deleted between the replica's look at it and the update.
func TestReplica_AnUpdateCreatesOnlyForThoseThatMay(t *testing.T) {
	refused := errors.New("not you")
	for creates, want := range map[bool]error{true: refused, false: engine.ErrNotFound} {
		s, o := creatingReplica(t, creates)
		o.before = func() {
			_, _, err := o.store.Delete(t.Context(), "default/a", registry.DeleteOptions{})
			require.NoError(t, err)
		}
		require.ErrorIs(t, putA(t, s, refused), want)
		_, err := o.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
		require.ErrorIs(t, err, engine.ErrNotFound)
	}
}

// Another write comes between the read and the first attempts. As kubectl apply may, the patch takes the resourceVersion away.
func TestReplica_APatchWithoutARevisionUndoesNoOtherWrite(t *testing.T) {
	s, o := replicaOf(t, config())
	create(t, o.store, widget("a", 1))
	updates := 0
	o.before = func() {
		if updates++; updates < 3 {
			_, _, err := o.store.Update(t.Context(), "default/a", grow(1), registry.WriteOptions{})
			require.NoError(t, err)
		}
	}
	require.NoError(t, takeRevisionAway(t, s))
	require.Equal(t, 3, updates)
	last, err := o.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, WidgetSpec{Size: 3, Color: "red"}, last.Value.Spec)
}

// As at the server.
func TestReplica_APatchWithoutARevisionIsRefusedWhereOneIsRequired(t *testing.T) {
	cfg := config()
	cfg.Strategy.RevisionRequired = true
	s, o := replicaOf(t, cfg)
	create(t, o.store, widget("a", 1))
	for _, at := range []*registry.Store[Widget]{s, o.store} {
		require.ErrorContains(t, takeRevisionAway(t, at), "must be specified for an update")
	}
}

// takeRevisionAway patches the object, and takes what says which it is away.
func takeRevisionAway(t *testing.T, s *registry.Store[Widget]) error {
	t.Helper()
	p, err := registry.ParsePatch(registry.MergePatch, []byte(`{"metadata":{"resourceVersion":null,"uid":null},"spec":{"color":"red"}}`))
	require.NoError(t, err)
	_, _, err = s.Resources()[0].Update(t.Context(), "default/a", func(live registry.Item) ([]byte, error) {
		now, err := live.JSON()
		if err != nil {
			return nil, err
		}
		return p.Apply(now)
	}, registry.WriteOptions{Patched: true})
	return err
}
