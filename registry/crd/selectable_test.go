package crd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
)

// selecting is plain with versions of which each has a field of its own to select by, the last one of
// which is not served.
var selecting = strings.Replace(plain, "storage: true,", "storage: true, selectableFields: [{jsonPath: .spec.size}],", 1) +
	`  - {name: v1beta1, served: true, storage: false, selectableFields: [{jsonPath: .spec.color}], schema: {openAPIV3Schema: {type: object}}}
  - {name: v1alpha1, served: false, storage: false, selectableFields: [{jsonPath: .spec.shape}]}
`

// A version that comes or goes does not change what storage knows the objects by.
func TestVersions_HaveTheFieldsOfThoseThatAreNotServed(t *testing.T) {
	for _, more := range [][2]string{{}, {"name: v1beta1, served: true", "name: v1beta1, served: false"}, {"strategy: None", "strategy: Webhook"}} {
		all, err := crd.Parse(strings.NewReader(strings.Replace(selecting, more[0], more[1], 1)))
		require.NoError(t, err)
		for _, v := range all[0].Versions() {
			require.Len(t, v.Config().Fields, 3)
			for _, name := range []string{"spec.size", "spec.color", "spec.shape"} {
				require.Contains(t, v.Config().Fields, name)
			}
		}
	}
	_, err := crd.Parse(strings.NewReader(strings.Replace(selecting, ".spec.shape", ".metadata.name", 1)))
	require.ErrorIs(t, err, crd.ErrManifest)
}

// By a field that the version does not have a selector would match nothing, or everything.
func TestResources_RefuseTheFieldsOfOtherVersions(t *testing.T) {
	all, err := crd.Parse(strings.NewReader(selecting))
	require.NoError(t, err)
	own := map[string]string{"v1": "spec.size", "v1beta1": "spec.color"}
	for _, v := range all[0].Versions() {
		cfg := v.Config()
		cfg.Engine.FreshnessTimeout = time.Hour // however long a machine stands still
		s, err := registry.New(cfg)
		require.NoError(t, err)
		r := s.Resources()[0]
		require.Equal(t, []string{own[v.Kind.Version], "metadata.name", "metadata.namespace"}, r.Info().Fields)
		for _, name := range []string{"spec.size", "spec.color", "spec.shape", "metadata.name"} {
			_, asText := r.List(t.Context(), engine.ListOptions{Fields: name + "!=a"})
			_, parsed := r.List(t.Context(), engine.ListOptions{FieldSelector: fields.OneTermNotEqualSelector(name, "a")})
			_, deleted := r.DeleteCollection(t.Context(), engine.ListOptions{Fields: name + "!=a"}, registry.DeleteOptions{})
			w, watched := r.Watch(t.Context(), engine.WatchOptions{Fields: name + "!=a"})
			for _, err := range []error{asText, parsed, deleted, watched} {
				if name == own[v.Kind.Version] || name == "metadata.name" {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, engine.ErrInvalidSelector)
				require.ErrorIs(t, err, engine.ErrUnknownField)
			}
			if watched == nil {
				w.Stop()
			}
		}
		_, err = r.List(t.Context(), engine.ListOptions{Fields: "spec.size"})
		require.ErrorIs(t, err, engine.ErrInvalidSelector)
		require.NoError(t, s.Close())
	}
}
