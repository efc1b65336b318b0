package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// What is hidden from the users of resources is there for those of the engine.
func TestHiddenFields_CannotBeSelectedBy(t *testing.T) {
	cfg := config()
	cfg.HiddenFields = []string{"spec.color"}
	s := newStore(t, cfg)
	create(t, s, widget("a", 1))
	r := s.Resources()[0]
	require.NotContains(t, r.Info().Fields, "spec.color")
	_, asText := r.List(t.Context(), engine.ListOptions{Fields: "spec.color!=red"})
	_, parsed := r.List(t.Context(), engine.ListOptions{FieldSelector: fields.OneTermNotEqualSelector("spec.color", "red")})
	_, deleted := r.DeleteCollection(t.Context(), engine.ListOptions{Fields: "spec.color!=red"}, registry.DeleteOptions{})
	_, watched := r.Watch(t.Context(), engine.WatchOptions{Fields: "metadata.name=a,spec.color!=red"})
	for _, err := range []error{asText, parsed, deleted, watched} {
		require.ErrorIs(t, err, engine.ErrInvalidSelector)
		require.ErrorIs(t, err, engine.ErrUnknownField)
	}
	_, err := r.List(t.Context(), engine.ListOptions{Fields: "spec.color"})
	require.ErrorIs(t, err, engine.ErrInvalidSelector)
	page, err := r.List(t.Context(), engine.ListOptions{Fields: "metadata.name=a"})
	require.NoError(t, err)
	require.Equal(t, 1, page.Len())
	all, err := s.Engine().List(t.Context(), engine.ListOptions{Fields: "spec.color!=red"})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
}

func TestNew_RefusesAHiddenFieldThatThereIsNot(t *testing.T) {
	cfg := config()
	cfg.HiddenFields = []string{"spec.shape"}
	_, err := registry.New(cfg)
	var wrong *engine.ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "HiddenFields", wrong.Field)
}
