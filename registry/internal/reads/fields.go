package reads

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
)

// Fields are the fields that selectors may name. Those of the engine may be more: the others are hidden.
type Fields struct {
	shown []string
	hides bool
}

// FieldsOf returns the fields of a kind that are not hidden, and those that every kind has.
func FieldsOf(kind, hidden []string) Fields {
	shown := slices.DeleteFunc(slices.Sorted(slices.Values(kind)), func(name string) bool { return slices.Contains(hidden, name) })
	return Fields{append(shown, "metadata.name", "metadata.namespace"), len(hidden) > 0}
}

// Names returns the names of the fields. They are shared and must not be changed.
func (f *Fields) Names() []string { return f.shown }

// Check refuses a field that is hidden, or unknown if there are hidden ones, in a selector as text or in one
// that is parsed. A text that does not parse is for the engine to refuse. The error is an
// [*engine.SelectorError].
func (f *Fields) Check(text string, parsed fields.Selector) error {
	if !f.hides {
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
		if !slices.Contains(f.shown, one.Field) {
			unknown := &engine.UnknownFieldError{Name: one.Field, Declared: f.shown}
			return &engine.SelectorError{Field: "FieldSelector", Input: selector.String(), Err: unknown}
		}
	}
	return nil
}
