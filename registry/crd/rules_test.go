package crd_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
)

// oddSizes takes each schema for one of the rule that sizes are odd, and warns of size 3. It keeps
// what it has checked.
type oddSizes struct {
	wrong   field.ErrorList
	checked [][2]string
}

func (r *oddSizes) Check(definition, old json.RawMessage) field.ErrorList {
	r.checked = append(r.checked, [2]string{string(definition), string(old)})
	return r.wrong
}

func (r *oddSizes) Compile(json.RawMessage) crd.Evaluate {
	return func(_ context.Context, o, old *unstructured.Unstructured) (wrong field.ErrorList, warnings []string) {
		size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size")
		if size%2 == 0 {
			wrong = append(wrong, field.Forbidden(field.NewPath("spec", "size"), "must be odd"))
		}
		if size == 3 && old != nil {
			warnings = append(warnings, "three")
		}
		return wrong, warnings
	}
}

// ruled opens a store of the widgets with rules.
func ruled(t *testing.T, rules crd.Rules) registry.Resource {
	t.Helper()
	file, err := os.Open("testdata/widgets.yaml")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	all, err := crd.Options{Rules: rules}.Parse(file)
	require.NoError(t, err)
	require.Empty(t, all[0].Notes, "the rules have an effect")
	s, err := registry.New(all[0].Config())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.Resources()[0]
}

func TestRules_RefuseObjectsAndWarn(t *testing.T) {
	object := ruled(t, &oddSizes{})
	var warnings []string
	opts := registry.WriteOptions{Warn: func(text string) { warnings = append(warnings, text) }}
	create := func(spec string) error {
		_, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":`+spec+`}`), opts)
		return err
	}
	require.EqualError(t, create(`{"size":2}`), `Widget "a" is invalid: spec.size: Forbidden: must be odd`)
	err := create(`{"size":200}`)
	require.ErrorContains(t, err, "spec.size: Invalid value: 200")
	require.ErrorContains(t, err, "must be odd", "the size has the type that rules rely on")
	for _, misfit := range []string{`{"size":"2"}`, `{}`, `{"size":2,"color":"blue"}`, `{"size":2,"parts":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`} {
		err := create(misfit)
		require.ErrorContains(t, err, "once the other errors are corrected", misfit)
		require.NotContains(t, err.Error(), "must be odd", misfit)
	}
	require.NoError(t, create(`{"size":3}`))
	require.Empty(t, warnings)
	_, _, err = object.Update(t.Context(), "default/a", func(live registry.Item) ([]byte, error) {
		return []byte(`{"metadata":{"name":"a","resourceVersion":"` + live.Revision().String() + `","labels":{"a":"b"}},"spec":{"size":3}}`), nil
	}, opts)
	require.NoError(t, err)
	require.Equal(t, []string{"three"}, warnings)
}

func TestRules_ThatCannotBeEvaluatedRefuseTheManifest(t *testing.T) {
	text, err := os.ReadFile("testdata/widgets.yaml")
	require.NoError(t, err)
	rules := &oddSizes{wrong: field.ErrorList{field.Required(field.NewPath("spec", "validation"), "a rule")}}
	_, err = crd.Options{Rules: rules}.Parse(strings.NewReader(string(text)))
	require.ErrorIs(t, err, crd.ErrManifest)
	require.EqualError(t, err, `CustomResourceDefinition "widgets.example.com": spec.validation: Required value: a rule`)
	var wrong *crd.RulesError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, rules.wrong, wrong.Errors)
	_, err = crd.Options{Rules: rules}.Parse(strings.NewReader(plain))
	require.NoError(t, err, "it has no rules")
}

// A definition that is replaced is there for comparison. One that is as it was needs no check.
func TestRules_OfAChangeAreCheckedAgainstWhatItReplaces(t *testing.T) {
	text, err := os.ReadFile("testdata/widgets.yaml")
	require.NoError(t, err)
	old := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(text, &old.Object))
	rules := &oddSizes{}
	_, err = crd.Options{Rules: rules}.Define(old, nil)
	require.NoError(t, err)
	require.Len(t, rules.checked, 1)
	require.Empty(t, rules.checked[0][1])

	now := old.DeepCopy()
	now.SetLabels(map[string]string{"a": "b"})
	_, err = crd.Options{Rules: rules}.Define(now, old)
	require.NoError(t, err)
	require.Len(t, rules.checked, 1, "nothing is defined anew")

	require.NoError(t, unstructured.SetNestedStringSlice(now.Object, []string{"w"}, "spec", "names", "shortNames"))
	_, err = crd.Options{Rules: rules}.Define(now, old)
	require.NoError(t, err)
	require.Len(t, rules.checked, 2)
	before, err := json.Marshal(old.Object)
	require.NoError(t, err)
	require.JSONEq(t, string(before), rules.checked[1][1])
	require.Contains(t, rules.checked[1][0], `"shortNames":["w"]`)
}
