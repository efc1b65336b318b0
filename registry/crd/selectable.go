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

// hidden returns the names of the fields that only other versions list.
func (d *Definition) hidden() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d.fields)), func(name string) bool { return slices.Contains(d.selectable, name) })
}
