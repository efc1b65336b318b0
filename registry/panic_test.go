package registry_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

// fragile is a kind whose own functions for JSON panic.
type fragile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              fragileSpec `json:"spec"`
}

type fragileSpec struct{}

func (fragileSpec) MarshalJSON() ([]byte, error) { panic("cannot encode") }

func (*fragileSpec) UnmarshalJSON([]byte) error { panic("cannot decode") }

// A panic in the kind's own JSON is returned, as an error of the kind and not of what was
// sent.
func TestResource_ContainsPanicsOfTheKindsOwnJSON(t *testing.T) {
	cfg := registry.Config[fragile]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Fragile"}}
	const body = `{"apiVersion":"example.com/v1","kind":"Fragile","metadata":{"namespace":"default","name":"a","resourceVersion":"7"},"spec":{}}`
	s, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	format, err := registry.FormatOf(cfg)
	require.NoError(t, err)

	_, created := s.Resources()[0].Create(t.Context(), "default", []byte(body), registry.WriteOptions{})
	_, decoded := format.Decode([]byte(body))
	schema := format.Schema()
	_, encoded := format.Encode(schema.New(), "7")
	for _, err := range []error{created, decoded, encoded} {
		require.ErrorIs(t, err, usercode.ErrPanic)
		var bad *registry.BadRequestError
		require.NotErrorAs(t, err, &bad)
	}
}

// A rule that panics fails the write that it is called for, whatever that is, and nothing is
// stored.
func TestStore_ContainsPanicsOfTheKindsRules(t *testing.T) {
	broken := false
	explode := func() {
		if broken {
			panic("a rule is broken")
		}
	}
	for name, change := range map[string]func(*registry.Config[Widget]){
		"Default": func(c *registry.Config[Widget]) { c.Strategy.Default = func(*Widget) { explode() } },
		"Prepare": func(c *registry.Config[Widget]) {
			c.Strategy.Prepare = func(context.Context, *Widget, *Widget) { explode() }
		},
		"Validate": func(c *registry.Config[Widget]) {
			c.Strategy.Validate = func(context.Context, *Widget, *Widget) field.ErrorList { explode(); return nil }
		},
		"Warn": func(c *registry.Config[Widget]) {
			c.Strategy.Warn = func(context.Context, *Widget, *Widget) []string { explode(); return nil }
		},
		"Canonicalize": func(c *registry.Config[Widget]) { c.Strategy.Canonicalize = func(*Widget) { explode() } },
		"Admit": func(c *registry.Config[Widget]) {
			c.Admit = []registry.Admitter{registry.AdmitFunc(func(context.Context, *registry.Admission) error { explode(); return nil })}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			change(&cfg)
			broken = false
			s := newStore(t, cfg)
			stored := create(t, s, widget("a", 1))
			broken = true
			ctx, resource := t.Context(), s.Resources()[0]
			const body = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"c"},"spec":{"size":1}}`

			_, created := s.Create(ctx, widget("b", 1), registry.WriteOptions{})
			_, pretended := s.Create(ctx, widget("b", 1), registry.WriteOptions{DryRun: true})
			_, generated := s.Create(ctx, Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "b-"}}, registry.WriteOptions{})
			_, received := resource.Create(ctx, "default", []byte(body), registry.WriteOptions{})
			_, _, updated := s.Update(ctx, stored.Key, grow(1), registry.WriteOptions{})
			for _, err := range []error{created, pretended, generated, received, updated} {
				require.ErrorIs(t, err, usercode.ErrPanic)
				require.ErrorContains(t, err, "a rule is broken")
			}
			list, err := s.Engine().List(ctx, engine.ListOptions{})
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			require.Equal(t, stored.Revision, list.Items[0].Revision)
		})
	}
}

// A function that prunes is called for bodies, and for what the process writes.
func TestResource_ContainsPanicsOfPruning(t *testing.T) {
	cfg := config()
	broken := false
	cfg.Prune = func(*Widget) []string {
		if broken {
			panic("cannot prune")
		}
		return nil
	}
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	broken = true
	body := []byte(`{"metadata":{"name":"b"}}`)
	r := s.Resources()[0]
	_, created := r.Create(t.Context(), "default", body, registry.WriteOptions{})
	_, _, updated := r.Update(t.Context(), o.Key, func(registry.Item) ([]byte, error) { return body, nil }, registry.WriteOptions{})
	_, within := s.Create(t.Context(), widget("b", 1), registry.WriteOptions{})
	_, _, changed := s.Update(t.Context(), o.Key, func(old *engine.Object[Widget]) (Widget, error) { return old.Value, nil }, registry.WriteOptions{})
	for _, err := range []error{created, updated, within, changed} {
		require.ErrorIs(t, err, usercode.ErrPanic)
		require.ErrorContains(t, err, "cannot prune")
	}
}
