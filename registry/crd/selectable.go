package crd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// selectable returns the fields that selectors of a version may name, each with the function that
// returns its value.
func (m *manifest) selectable(v *version) (map[string]func(*unstructured.Unstructured) string, error) {
	wrong := func(problem string) error {
		return &ManifestError{m.Metadata.Name, "spec.versions.selectableFields", problem}
	}
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

// Resources returns the resources of s, a store of this version, for a server: their field selectors may
// name only the fields that this version lists. Those of s.Resources may name the fields of all versions,
// which storage has, and find nothing, or everything, by one that this version does not have.
//
// Errors of the resources, besides those of s.Resources: [engine.ErrUnknownField] in an
// [*engine.SelectorError].
func (d *Definition) Resources(s *registry.Store[unstructured.Unstructured]) []registry.Resource {
	all := s.Resources()
	for i, r := range all {
		info := *r.Info()
		info.Fields = slices.DeleteFunc(slices.Clone(info.Fields), func(name string) bool {
			return d.fields[name] != nil && !slices.Contains(d.selectable, name)
		})
		all[i] = &versionResource{r, &info}
	}
	return all
}

// versionResource is a resource that refuses selectors of the fields of other versions.
type versionResource struct {
	registry.Resource
	info *registry.Info
}

func (r *versionResource) Info() *registry.Info { return r.info }

func (r *versionResource) List(ctx context.Context, opts engine.ListOptions) (registry.Page, error) {
	if err := r.checkFields(opts.Fields, opts.FieldSelector); err != nil {
		return registry.Page{}, err
	}
	return r.Resource.List(ctx, opts)
}

func (r *versionResource) Watch(ctx context.Context, opts engine.WatchOptions) (registry.Stream, error) {
	if err := r.checkFields(opts.Fields, opts.FieldSelector); err != nil {
		return nil, err
	}
	return r.Resource.Watch(ctx, opts)
}

func (r *versionResource) DeleteAll(ctx context.Context, which engine.ListOptions, opts registry.DeleteOptions) (registry.Page, error) {
	if err := r.checkFields(which.Fields, which.FieldSelector); err != nil {
		return registry.Page{}, err
	}
	return r.Resource.DeleteAll(ctx, which, opts)
}

// checkFields refuses a field that the version does not list, in a selector as text or in one that
// is parsed. A text that does not parse is for the engine to refuse.
func (r *versionResource) checkFields(text string, parsed fields.Selector) error {
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return nil
	}
	if parsed != nil {
		selector = fields.AndSelectors(selector, parsed)
	}
	for _, one := range selector.Requirements() {
		if !slices.Contains(r.info.Fields, one.Field) {
			unknown := &engine.UnknownFieldError{Name: one.Field, Declared: r.info.Fields}
			return &engine.SelectorError{Field: "FieldSelector", Input: selector.String(), Err: unknown}
		}
	}
	return nil
}
