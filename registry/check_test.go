package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/store/backend"
)

// An object that is larger than the limit, since the process has made it, can be written as long as it does not grow.
func TestResource_MaxBytesBoundsTheGrowthOfAnObject(t *testing.T) {
	cfg := config()
	cfg.Apply = apply.New
	s := newStore(t, cfg)
	r := s.Resources()[0]
	large := widget("a", 1)
	large.Annotations = map[string]string{"note": strings.Repeat("x", 10_000)}
	create(t, s, large)
	patched := func(note int, limit int64) error {
		p, err := registry.ParsePatch(registry.MergePatch, fmt.Appendf(nil, `{"metadata":{"annotations":{"note":%q}}}`, strings.Repeat("y", note)))
		require.NoError(t, err)
		_, _, err = r.Update(t.Context(), "default/a", func(live registry.Item) ([]byte, error) { return p.Apply([]byte(body(t, live))) }, registry.WriteOptions{MaxBytes: limit})
		return err
	}
	require.NoError(t, patched(10_000, 5000))
	require.ErrorIs(t, patched(10_001, 5000), backend.ErrTooLarge)
	require.NoError(t, patched(10_001, 0))
	require.NoError(t, patched(9000, 5000))
	applied := func(size int) error {
		config := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","annotations":{"more":%q}}}`, strings.Repeat("z", size))
		_, _, err := r.Apply(t.Context(), "default/a", []byte(config), registry.WriteOptions{Manager: "me", MaxBytes: 15_000})
		return err
	}
	require.NoError(t, applied(1000))
	require.ErrorIs(t, applied(6000), backend.ErrTooLarge)
}
