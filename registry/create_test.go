package registry_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// The text of errors takes time by the square of their number, and a body has room for many.
func TestCreate_TellsTheFirstHundredErrorsAlone(t *testing.T) {
	s := newStore(t, config())
	bad := widget("a", -1)
	bad.Labels = map[string]string{}
	for i := range 1000 {
		bad.Labels[fmt.Sprintf("_%d", i)] = ""
	}
	_, err := s.Create(t.Context(), bad, registry.WriteOptions{})
	var invalid *registry.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Errors, 101)
	require.Equal(t, "Too many: the object has more errors than these 100", invalid.Errors[100].ErrorBody())
}

// Each controller after the first is an error that has all references.
func TestCreate_TellsNoLargeValuesInErrors(t *testing.T) {
	s := newStore(t, config())
	bad, yes := widget("a", 1), true
	for i := range 1000 {
		bad.OwnerReferences = append(bad.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Box", Name: fmt.Sprint(i), UID: "1", Controller: &yes})
	}
	_, err := s.Create(t.Context(), bad, registry.WriteOptions{})
	require.ErrorAs(t, err, new(*registry.InvalidError))
	require.ErrorContains(t, err, "metadata.ownerReferences: Invalid value: Only one reference can have Controller set to true")
	require.Less(t, len(err.Error()), 100_000)
}

// crate is a kind whose spec holds a list and a map.
type crate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              crateSpec `json:"spec"`
}

type crateSpec struct {
	Items  []string          `json:"items,omitempty"`
	Counts map[string]string `json:"counts,omitempty"`
}

// Rules may change in place what the spec of a new object holds. Those of the next name must see it as
// the writer has sent it.
func TestCreate_RulesOfAGeneratedNameSeeNothingOfTheNameBefore(t *testing.T) {
	attempts, taken := 0, ""
	s := newStore(t, registry.Config[crate]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Crate"},
		Strategy: registry.Strategy[crate]{
			Prepare: func(_ context.Context, c, _ *crate) {
				if attempts++; attempts == 2 {
					c.Name = taken
				}
				c.Spec.Items[0] += "!"
				c.Spec.Counts["prepared"] += "!"
			},
			Canonicalize: func(c *crate) { c.Spec.Items[0] += "?" },
		},
	})
	value := func() crate {
		return crate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "x-"},
			Spec:       crateSpec{Items: []string{"apple"}, Counts: map[string]string{}},
		}
	}
	first, err := s.Create(t.Context(), value(), registry.WriteOptions{})
	require.NoError(t, err)
	taken = first.Value.Name
	second, err := s.Create(t.Context(), value(), registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, 3, attempts)
	require.Equal(t, first.Value.Spec, second.Value.Spec)
	require.Equal(t, []string{"apple!?"}, second.Value.Spec.Items)
}

// tree and terms have themselves within them, without a struct in between.
type (
	tree  map[string]tree
	terms []terms
)

type formula struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Names             tree  `json:"names,omitempty"`
	Terms             terms `json:"terms,omitempty"`
}

func TestNew_OfATypeThatHasItselfWithin(t *testing.T) {
	s := newStore(t, registry.Config[formula]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Formula"}})
	value := formula{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Names: tree{"a": {"b": nil}}, Terms: terms{{}, {{}}}}
	before, err := s.Create(t.Context(), value, registry.WriteOptions{})
	require.NoError(t, err)
	set := func(next terms) int64 {
		o, _, err := s.Update(t.Context(), before.Key, func(old *engine.Object[formula]) (formula, error) {
			f := old.Value
			f.Terms = next
			return f, nil
		}, registry.WriteOptions{})
		require.NoError(t, err)
		return o.Value.Generation
	}
	require.EqualValues(t, 1, set(terms{{}, {{}}}), "it is the same")
	require.EqualValues(t, 2, set(terms{{}, {{{}}}}))
}
