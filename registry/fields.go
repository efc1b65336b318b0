package registry

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
)

// shownFields returns the names of the fields that selectors may name.
func shownFields[T any](cfg *Config[T]) []string {
	shown := slices.DeleteFunc(slices.Sorted(maps.Keys(cfg.Fields)), func(name string) bool { return slices.Contains(cfg.HiddenFields, name) })
	return append(shown, "metadata.name", "metadata.namespace")
}

// checkFields refuses a field that is hidden, or unknown if there are hidden ones, in a selector as text or in one
// that is parsed. A text that does not parse is for the engine to refuse.
func (r *resource) checkFields(text string, parsed fields.Selector) error {
	if !r.hidesFields {
		return nil
	}
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return nil
	}
	if parsed != nil {
		selector = fields.AndSelectors(selector, parsed)
	}
	for _, one := range selector.Requirements() {
		if !slices.Contains(r.fields, one.Field) {
			unknown := &engine.UnknownFieldError{Name: one.Field, Declared: r.fields}
			return &engine.SelectorError{Field: "FieldSelector", Input: selector.String(), Err: unknown}
		}
	}
	return nil
}
