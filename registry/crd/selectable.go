package crd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// selectable returns the fields that selectors of a version may name, each with the function that
// returns its value.
func (m *manifest) selectable(v *version) (map[string]func(*unstructured.Unstructured) string, error) {
	wrong := func(problem string) error { return m.wrong("spec.versions.selectableFields", problem) }
	all := map[string]func(*unstructured.Unstructured) string{}
	for _, f := range v.SelectableFields {
		p, err := parsePath(f.Path)
		if err != nil {
			return nil, wrong(err.Error())
		}
		name := strings.TrimPrefix(f.Path, ".")
		if of, _ := cutName(name); of == "metadata" {
			return nil, wrong(quoted(f.Path) + " is of metadata, of which name and namespace alone can be selected, in every kind; leave it out")
		}
		if strings.TrimSpace(name) != name || strings.ContainsAny(name, "=!,") {
			return nil, wrong(quoted(f.Path) + " has a blank at its end, or = or ! or a comma, which no selector can contain in a name; leave it out")
		}
		all[name] = func(o *unstructured.Unstructured) string {
			if value := p.find(o.Object); value != nil {
				return fmt.Sprint(value)
			}
			return ""
		}
	}
	return all, nil
}

// noteSelectable notes the selectable fields of a version that its schema does not have: no object has
// one.
func (d *Definition) noteSelectable(of *version) {
	var gone []string
	for _, f := range of.SelectableFields {
		if names, ok := fieldNames(f.Path); ok && !d.schema.mayHave(names) {
			gone = append(gone, f.Path)
		}
	}
	n := min(len(gone), maxNamed)
	d.noteUnused(of.title(), "selectable fields", gone[:n], len(gone)-n)
}

// hidden returns the names of the fields that only other versions list.
func (d *Definition) hidden() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d.fields)), func(name string) bool { return slices.Contains(d.selectable, name) })
}
