package crd

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
)

// readScale makes the scale subresource from its paths.
func (d *Definition) readScale(m *manifest, v *version) error {
	paths := v.Subresources.Scale
	if paths == nil {
		return nil
	}
	var wanted, observed, selector []string
	for _, p := range []struct {
		field, text string
		below       []string
		names       *[]string
	}{
		{"specReplicasPath", paths.Spec, []string{"spec"}, &wanted},
		{"statusReplicasPath", paths.Status, []string{"status"}, &observed},
		{"labelSelectorPath", paths.Selector, []string{"spec", "status"}, &selector},
	} {
		if p.text == "" && p.field == "labelSelectorPath" {
			continue
		}
		var ok bool
		if *p.names, ok = fieldNames(p.text); !ok || len(*p.names) < 2 || !slices.Contains(p.below, (*p.names)[0]) {
			return &ManifestError{m.Metadata.Name, "spec.versions.subresources.scale." + p.field, fmt.Sprintf(
				"is %s; give the path of a field of %s, with names and dots alone, such as .%s.replicas", quoted(p.text), strings.Join(p.below, " or "), p.below[0])}
		}
	}
	d.scale = &registry.Scale[unstructured.Unstructured]{
		Replicas: func(o *unstructured.Unstructured) (int32, bool) { return count(o, wanted) },
		SetReplicas: func(o *unstructured.Unstructured, n int32) {
			_ = unstructured.SetNestedField(o.Object, int64(n), wanted...) // the caller looks whether it could
		},
		Observed: func(o *unstructured.Unstructured) int32 { n, _ := count(o, observed); return n },
	}
	if selector != nil {
		d.scale.Selector = func(o *unstructured.Unstructured) string {
			text, _, _ := unstructured.NestedString(o.Object, selector...) // what is no text selects nothing
			return text
		}
	}
	return nil
}

// fieldNames returns the names in a path of names and dots, such as .spec.replicas.
func fieldNames(path string) (names []string, ok bool) {
	rest, ok := strings.CutPrefix(path, ".")
	if !ok || strings.ContainsAny(rest, "[]{}()'\"*?@$ ") {
		return nil, false
	}
	names = strings.Split(rest, ".")
	return names, !slices.Contains(names, "")
}

// count returns the number at a path; ok is false if there is none that counts replicas.
func count(o *unstructured.Unstructured, path []string) (n int32, ok bool) {
	number, found, err := unstructured.NestedInt64(o.Object, path...)
	if err != nil || !found || number < math.MinInt32 || number > math.MaxInt32 {
		return 0, false
	}
	return int32(number), true
}
