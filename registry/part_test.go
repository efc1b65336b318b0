package registry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
)

// painted returns a configuration of widgets whose color changes by a subresource alone.
func painted() registry.Config[Widget] {
	cfg := config()
	cfg.Kind.Parts = []registry.Part{{Name: "paint", Verbs: []string{"get", "update"}}, {Name: "look", Verbs: []string{"update"}}}
	cfg.Apply = apply.New
	cfg.Strategy.Prepare = func(ctx context.Context, w, old *Widget) {
		if old != nil && registry.SubresourceOf(ctx) != "paint" {
			w.Spec.Color = old.Spec.Color
		}
	}
	return cfg
}

// paint changes all of a widget.
func paint(old *engine.Object[Widget]) (Widget, error) {
	w := old.Value
	w.Spec.Color, w.Status.Phase = "red", "Wet"
	return w, nil
}

// owners returns the managers of a widget, with the subresources and the fields.
func owners(o *engine.Object[Widget]) (all []string) {
	for _, e := range o.Value.ManagedFields {
		all = append(all, e.Manager+" "+e.Subresource+" "+e.FieldsV1.GetRawString())
	}
	return all
}

func TestPart_IsWhatTheRulesSay(t *testing.T) {
	cfg := painted()
	var admitted []string
	cfg.Admit = []registry.Admitter{registry.AdmitFunc(func(ctx context.Context, a *registry.Admission) error {
		admitted = append(admitted, string(a.Operation)+" "+a.Subresource+" "+registry.SubresourceOf(ctx))
		return nil
	})}
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	next, _, err := s.Update(t.Context(), o.Key, paint, registry.WriteOptions{Manager: "me"})
	require.NoError(t, err)
	require.Equal(t, "grey", next.Value.Spec.Color)
	next, err = s.UpdatePart(t.Context(), o.Key, "paint", paint, registry.WriteOptions{Manager: "painter"})
	require.NoError(t, err)
	require.Equal(t, "red", next.Value.Spec.Color)
	require.Empty(t, next.Value.Status.Phase, "that is a subresource of its own")
	require.EqualValues(t, 2, next.Value.Generation)
	require.Contains(t, owners(next), `painter paint {"f:spec":{"f:color":{}}}`)
	require.Equal(t, []string{"CREATE  ", "UPDATE  ", "UPDATE paint paint"}, admitted)

	_, err = s.UpdatePart(t.Context(), o.Key, "peel", paint, registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrUnsupported)
	_, err = s.UpdatePart(t.Context(), "default/none", "paint", paint, registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// What an admitter writes within a write of a subresource is not of that one.
func TestPart_IsOfItsWriteAlone(t *testing.T) {
	var of []string
	inner := config()
	inner.Strategy.Prepare = func(ctx context.Context, _, _ *Widget) { of = append(of, registry.SubresourceOf(ctx)) }
	inner.Admit = []registry.Admitter{registry.AdmitFunc(func(ctx context.Context, a *registry.Admission) error {
		of = append(of, string(a.Operation)+registry.SubresourceOf(ctx))
		return nil
	})}
	made := newStore(t, inner)
	cfg := painted()
	cfg.Admit = []registry.Admitter{registry.AdmitFunc(func(ctx context.Context, a *registry.Admission) error {
		if a.Operation == registry.OperationCreate {
			return nil
		}
		o, err := made.Create(ctx, widget("b", 1), registry.WriteOptions{})
		require.NoError(t, err)
		_, _, err = made.Delete(ctx, o.Key, registry.DeleteOptions{})
		return err
	})}
	others := newStore(t, cfg)
	o := create(t, others, widget("a", 1))
	_, err := others.UpdatePart(t.Context(), o.Key, "paint", paint, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"CREATE", "", "DELETE"}, of)
}

func TestPart_HasItsVerbs(t *testing.T) {
	cfg := painted()
	verbs := func(s *registry.Store[Widget]) map[string][]string {
		all := map[string][]string{}
		for _, r := range s.Resources() {
			all[r.Info().Subresource] = r.Info().Verbs
		}
		delete(all, "")
		return all
	}
	s := newStore(t, cfg)
	want := map[string][]string{"status": {"get", "patch", "update"}, "paint": {"get", "update"}, "look": {"update"}}
	require.Equal(t, want, verbs(s))
	cfg.ReadOnly = true
	require.Equal(t, map[string][]string{"status": {"get"}, "paint": {"get"}}, verbs(newStore(t, cfg)))
	cfg.Kind.Parts[1].Verbs[0] = "patch"
	require.Equal(t, want, verbs(s), "it has a list of its own")
}

func TestPart_WrongOnesAreRefused(t *testing.T) {
	update := []string{"update"}
	for field, parts := range map[string][]registry.Part{
		"Kind.Parts[0].Name":  {{Name: "status", Verbs: update}},
		"Kind.Parts[1].Name":  {{Name: "paint", Verbs: update}, {Name: "paint", Verbs: update}},
		"Kind.Parts[2].Name":  {{Name: "a", Verbs: update}, {Name: "b", Verbs: update}, {Name: "A/b", Verbs: update}},
		"Kind.Parts[0].Verbs": {{Name: "paint"}},
		"Kind.Parts[1].Verbs": {{Name: "a", Verbs: update}, {Name: "paint", Verbs: []string{"update", "create"}}},
	} {
		cfg := config()
		cfg.Kind.Parts = parts
		_, err := registry.New(cfg)
		wrong, ok := errors.AsType[*engine.ConfigError](err)
		require.True(t, ok, err)
		require.Equal(t, field, wrong.Field)
	}
}
