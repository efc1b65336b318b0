package apiextensions_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// noRed refuses objects that are red, whatever their rules say, and definitions that have the rule
// "wrong" unless they replace one that has it.
type noRed struct{}

func (noRed) Check(definition, old json.RawMessage) field.ErrorList {
	if strings.Contains(string(definition), `"wrong"`) && !strings.Contains(string(old), `"wrong"`) {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "validation", "openAPIV3Schema"), "wrong", "is not a rule")}
	}
	return nil
}

func (noRed) Compile(json.RawMessage) crd.Evaluate {
	return func(_ context.Context, o, _ *unstructured.Unstructured) (field.ErrorList, []string) {
		if color, _, _ := unstructured.NestedString(o.Object, "spec", "color"); color == "red" {
			return field.ErrorList{field.Forbidden(field.NewPath("spec", "color"), "must not be red")}, nil
		}
		return nil, []string{"it is not red"}
	}
}

// withRule adds a rule to the schema.
func withRule(rule string) func(map[string]any) {
	return ofVersion(func(v map[string]any) {
		schema := v["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		schema["x-kubernetes-validations"] = []any{map[string]any{"rule": rule}}
	})
}

func TestRules_RefuseObjectsAndDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{Rules: noRed{}})
		a := c.must(422, "POST", definitionsPath, definition("widgets", "Widget", withRule("wrong")))
		require.Contains(t, a.Body.String(), `"field":"spec.validation.openAPIV3Schema"`)
		c.define(definition("widgets", "Widget", withRule("right")))
		a = c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"color":"grey"}}`)
		require.Contains(t, a.Header().Get("Warning"), "it is not red")
		a = c.must(422, "PATCH", widgetsPath+"/w", `{"spec":{"color":"red"}}`, "Content-Type", "application/merge-patch+json")
		require.Contains(t, a.Body.String(), `"field":"spec.color"`)
		c.update(422, definition("widgets", "Widget", withRule("wrong")))
		c.must(422, "POST", widgetsPath, `{"metadata":{"name":"v"},"spec":{"color":"red"}}`)
	})
}

// Rules that a program without them has stored are evaluated when one with them starts, and are
// not for the writer of another change to correct.
func TestRules_OfAStoredDefinitionAreNotCheckedAnew(t *testing.T) {
	file, err := bolt.Open(filepath.Join(t.TempDir(), "objects"), bolt.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	cfg := onFile(file)
	c := newCluster(t, cfg)
	a := c.must(201, "POST", definitionsPath, definition("widgets", "Widget", withRule("wrong")))
	require.Contains(t, a.Header().Get("Warning"), "rules of version v1 are not evaluated")
	c.await(widgetsName, "Established=True")
	c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"color":"red"}}`)
	require.NoError(t, c.definitions.Close())

	cfg.Rules = noRed{}
	c = newCluster(t, cfg)
	defer func() { require.NoError(t, c.definitions.Close()) }()
	c.must(200, "GET", widgetsPath+"/w", "")
	c.must(422, "POST", widgetsPath, `{"metadata":{"name":"v"},"spec":{"color":"red"}}`)
	a = c.must(200, "PATCH", definitionsPath+"/"+widgetsName, `{"spec":{"names":{"shortNames":["w"]}}}`, "Content-Type", "application/merge-patch+json")
	require.Empty(t, a.Header().Get("Warning"), "the rules have an effect")
}
