package crd

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
)

// readScale makes the scale subresource from its paths.
func (d *Definition) readScale(m *manifest, v *version) error {
	paths := v.Subresources.Scale
	if paths == nil {
		return nil
	}
	f := &scaleFields{}
	for _, p := range []struct {
		field, text string
		below       []string
		names       *[]string
	}{
		{"specReplicasPath", paths.Spec, []string{"spec"}, &f.wanted},
		{"statusReplicasPath", paths.Status, []string{"status"}, &f.observed},
		{"labelSelectorPath", paths.Selector, []string{"spec", "status"}, &f.selector},
	} {
		if p.text == "" && p.field == "labelSelectorPath" {
			continue
		}
		var ok bool
		if *p.names, ok = fieldNames(p.text); !ok || len(*p.names) < 2 || !slices.Contains(p.below, (*p.names)[0]) {
			return m.wrong("spec.versions.subresources.scale."+p.field, fmt.Sprintf(
				"is %s; give the path of a field of %s, with names and dots alone, such as .%s.replicas", quoted(p.text), strings.Join(p.below, " or "), p.below[0]))
		}
	}
	d.scaled, d.scale = f, f.scale()
	return nil
}

// scaleFields are the paths of the fields that the scale shows; selector is nil if it shows none.
type scaleFields struct{ wanted, observed, selector []string }

// scale returns the subresource that shows the fields.
func (f *scaleFields) scale() *registry.Scale[unstructured.Unstructured] {
	s := &registry.Scale[unstructured.Unstructured]{
		Replicas: func(o *unstructured.Unstructured) (int32, bool) { return count(o, f.wanted) },
		SetReplicas: func(o *unstructured.Unstructured, n int32) {
			_ = unstructured.SetNestedField(o.Object, int64(n), f.wanted...) // the caller looks whether it could
		},
		Observed: func(o *unstructured.Unstructured) int32 { n, _ := count(o, f.observed); return n },
	}
	if f.selector != nil {
		s.Selector = func(o *unstructured.Unstructured) string {
			text, _, _ := unstructured.NestedString(o.Object, f.selector...) // a value that is not a text selects nothing
			return text
		}
	}
	return s
}

// check returns what is wrong with the fields of an object that its scale shows, whatever the schema
// says of them. The one of the spec is left out for a write of the status.
func (f *scaleFields) check(o *unstructured.Unstructured, ofStatus bool) (wrong field.ErrorList) {
	if f == nil {
		return nil
	}
	if !ofStatus {
		wrong = checkCount(o, f.wanted)
	}
	wrong = append(wrong, checkCount(o, f.observed)...)
	if f.selector == nil {
		return wrong
	}
	if _, _, err := unstructured.NestedString(o.Object, f.selector...); err != nil {
		wrong = append(wrong, field.Invalid(shownPath(f.selector), "", shortened(err.Error())))
	}
	return wrong
}

// checkCount returns what is wrong with a number of replicas, which may be missing.
func checkCount(o *unstructured.Unstructured, path []string) field.ErrorList {
	n, _, err := unstructured.NestedInt64(o.Object, path...)
	problem := ""
	switch {
	case err != nil:
		problem = shortened(err.Error())
	case n < 0:
		problem = "should be a non-negative integer"
	case n > math.MaxInt32:
		problem = fmt.Sprintf("should be less than or equal to %d", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(shownPath(path), n, problem)}
}

// shownPath returns a path as errors show it: as the manifest has it.
func shownPath(names []string) *field.Path { return field.NewPath("." + strings.Join(names, ".")) }

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
