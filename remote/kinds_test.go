package remote_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store/backend"
)

// A replica learns from its origin which kinds there are.
func TestKinds_AreThoseThatAreServed(t *testing.T) {
	origin := newServer(t, func(cfg *registry.Config[Widget]) {
		cfg.Kind.ShortNames, cfg.Kind.Categories = []string{"wd"}, []string{"all"}
	})
	kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.url})
	require.NoError(t, err)
	require.Len(t, kinds, 1)
	require.Equal(t, registry.Kind{
		Group: "example.com", Version: "v1", Kind: "Widget", Plural: "widgets", Singular: "widget",
		ShortNames: []string{"wd"}, Categories: []string{"all"}, Status: true,
	}, kinds[0].Kind)
	require.Contains(t, string(kinds[0].Schema), `"size"`)
}

func TestKinds_OfWhatIsNoServer(t *testing.T) {
	_, err := remote.Kinds(t.Context(), remote.Config{URL: frames(t, "200 <html>").URL})
	require.ErrorContains(t, err, "does not parse")
	var status *remote.StatusError
	_, err = remote.Kinds(t.Context(), remote.Config{URL: frames(t, "403 no").URL})
	require.ErrorAs(t, err, &status)
	require.ErrorIs(t, err, backend.ErrDenied)
}
