package crd_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
)

// withScale returns the manifest of widgets with that scale.
func withScale(t *testing.T, scale string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/widgets.yaml")
	require.NoError(t, err)
	const there = "{specReplicasPath: .spec.size, statusReplicasPath: .status.size}"
	require.Contains(t, string(text), there)
	return strings.Replace(string(text), there, scale, 1)
}

func TestScale_FollowsThePathsOfTheManifest(t *testing.T) {
	all, err := crd.Parse(strings.NewReader(withScale(t, "{specReplicasPath: .spec.limits.copies, statusReplicasPath: .status.copies, labelSelectorPath: .spec.color}")))
	require.NoError(t, err)
	s, err := registry.New(all[0].Config())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	object, scale := s.Resources()[0], s.Resources()[2]
	_, err = object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":3,"color":"red"}}`), registry.WriteOptions{})
	require.NoError(t, err)
	_, err = scale.Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.ErrorContains(t, err, "spec.replicas: Required value")
	it, _, err := scale.Update(t.Context(), "default/a", func(registry.Item) ([]byte, error) {
		return []byte(`{"metadata":{"name":"a"},"spec":{"replicas":2}}`), nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	text, err := it.JSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"spec":{"replicas":2},"status":{"replicas":0,"selector":"red"}`)
	it, err = object.Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.NoError(t, err)
	text, err = it.JSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"limits":{"copies":2}`)
}

// The schema decides of a scale as of any other write.
func TestScale_ObeysTheSchema(t *testing.T) {
	_, _, s := newWidgets(t)
	_, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":3}}`), registry.WriteOptions{})
	require.NoError(t, err)
	_, _, err = s.Resources()[2].Update(t.Context(), "default/a", func(registry.Item) ([]byte, error) {
		return []byte(`{"metadata":{"name":"a"},"spec":{"replicas":101}}`), nil
	}, registry.WriteOptions{})
	require.ErrorContains(t, err, "spec.size in body should be less than or equal to 100")
}

// An object that is older than its scale may have a number that cannot be one of replicas. Its status can be
// written nevertheless.
func TestScale_ThatAnOldObjectDoesNotFitLeavesItsStatusWritable(t *testing.T) {
	_, status, s := newWidgets(t)
	for _, size := range []int64{-1, 5_000_000_000} {
		_, err := s.Engine().Put(t.Context(), unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "default", "name": "a"}, "spec": map[string]any{"size": size},
		}})
		require.NoError(t, err)
		it, _, err := status.Update(t.Context(), "default/a", func(live registry.Item) ([]byte, error) {
			return fmt.Appendf(nil, `{"metadata":{"name":"a","resourceVersion":"%s"},"status":{"conditions":[{"type":"Ready"}]}}`, live.Revision()), nil
		}, registry.WriteOptions{})
		require.NoError(t, err)
		text, err := it.JSON()
		require.NoError(t, err)
		require.Contains(t, string(text), fmt.Sprintf(`"spec":{"size":%d},"status":{"conditions":[{"type":"Ready"}]}`, size))
	}
	_, err := s.Resources()[2].Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.ErrorContains(t, err, "spec.replicas: Required value", "a scale cannot show such a number")
}

// Whatever the schema says, an autoscaler could not read another value, as in Kubernetes.
func TestScale_FieldsMustBeNumbersOfReplicas(t *testing.T) {
	all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "schema: {openAPIV3Schema: {type: object}}",
		`subresources: {status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n, labelSelectorPath: .status.selector}},
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}`, 1)))
	require.NoError(t, err)
	s, err := registry.New(all[0].Config())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for spec, want := range map[string][]string{
		`{}`: nil, `{"n":0}`: nil, `{"n":2147483647}`: nil,
		`{"n":-1}`:         {"FieldValueInvalid .spec.n"},
		`{"n":2147483648}`: {"FieldValueInvalid .spec.n"},
		`{"n":"3"}`:        {"FieldValueInvalid .spec.n"},
		`{"n":1.5}`:        {"FieldValueInvalid .spec.n"},
		`5`:                {"FieldValueInvalid .spec.n"},
	} {
		require.Equal(t, want, wrongFields(t, s, spec), spec)
	}
	_, err = s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"}}`), registry.WriteOptions{})
	require.NoError(t, err)
	for status, field := range map[string]string{`{"n":-1}`: ".status.n", `{"n":"1"}`: ".status.n", `{"selector":1}`: ".status.selector", `{"n":1,"selector":"a=b"}`: ""} {
		_, _, err := s.Resources()[1].Update(t.Context(), "default/a", func(live registry.Item) ([]byte, error) {
			return []byte(`{"metadata":{"name":"a","resourceVersion":"` + live.Revision().String() + `"},"status":` + status + `}`), nil
		}, registry.WriteOptions{})
		if field == "" {
			require.NoError(t, err)
			continue
		}
		var invalid *registry.InvalidError
		require.ErrorAs(t, err, &invalid, status)
		require.Len(t, invalid.Errors, 1, status)
		require.Equal(t, field, invalid.Errors[0].Field, status)
	}
}

func TestParse_RefusesPathsOfNoScale(t *testing.T) {
	for mention, scale := range map[string]string{
		`specReplicasPath is ""; give`:               "{statusReplicasPath: .status.size}",
		`statusReplicasPath is ""; give`:             "{specReplicasPath: .spec.size}",
		`specReplicasPath is ".size"; give`:          "{specReplicasPath: .size, statusReplicasPath: .status.size}",
		`specReplicasPath is ".spec"; give`:          "{specReplicasPath: .spec, statusReplicasPath: .status.size}",
		`specReplicasPath is "spec.size"; give`:      "{specReplicasPath: spec.size, statusReplicasPath: .status.size}",
		`specReplicasPath is ".spec..size"; give`:    "{specReplicasPath: .spec..size, statusReplicasPath: .status.size}",
		`specReplicasPath is ".spec.sizes[0]"; give`: "{specReplicasPath: '.spec.sizes[0]', statusReplicasPath: .status.size}",
		`statusReplicasPath is ".spec.size"; give`:   "{specReplicasPath: .spec.size, statusReplicasPath: .spec.size}",
		`labelSelectorPath is ".metadata.labels"`:    "{specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .metadata.labels}",
	} {
		_, err := crd.Parse(strings.NewReader(withScale(t, scale)))
		require.ErrorIs(t, err, crd.ErrManifest, scale)
		require.ErrorContains(t, err, "spec.versions.subresources.scale."+mention)
	}
}
