package crd

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry/internal/fielderrors"
)

// checkValues returns what is wrong with an object by the rules that OpenAPI does not have:
// those of lists that are sets or maps, and of resources inside of the object. old is what it
// replaces, or nil. If that has repeated items, the object may have some: it could not be
// changed otherwise. Resources inside of the object are not looked at in a write of the status.
func (s *schema) checkValues(o, old *unstructured.Unstructured, ofStatus bool) field.ErrorList {
	var wrong, repeated field.ErrorList
	s.visit(o.Object, nil, func(s *schema, value any, at *field.Path) {
		if !ofStatus && len(wrong) <= fielderrors.Most {
			wrong = append(wrong, s.checkEmbedded(value, at)...)
		}
		repeated = append(repeated, s.repeatedItems(value, at, fielderrors.Most+1-len(repeated))...)
	})
	if len(repeated) > 0 && (old == nil || !s.hasRepeatedItems(old.Object)) {
		wrong = append(wrong, repeated...)
	}
	return wrong
}

func (s *schema) hasRepeatedItems(value any) (has bool) {
	s.visit(value, nil, func(s *schema, value any, at *field.Path) { has = has || len(s.repeatedItems(value, at, 1)) > 0 })
	return has
}

// visit calls do of each value that has a schema, in the order of their paths.
func (s *schema) visit(value any, at *field.Path, do func(s *schema, value any, at *field.Path)) {
	if s == nil {
		return
	}
	do(s, value, at)
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			of := s.Properties[name]
			if of == nil && s.Additional != nil {
				of = s.Additional.schema
			}
			of.visit(v[name], at.Child(shortened(name)), do)
		}
	case []any:
		for i, item := range v {
			s.Items.visit(item, at.Index(i), do)
		}
	}
}

// repeatedItems returns an error for each item of a set, or of a map by its keys, that equals an
// earlier item, but at most the given number. If an item of a map is not an object, the error says
// that instead. Unlike in Kubernetes 1 and 1.0 are equal, since both are sent back as 1.
func (s *schema) repeatedItems(value any, at *field.Path, most int) (wrong field.ErrorList) {
	items, isList := value.([]any)
	if !isList || s.ListType != "set" && s.ListType != "map" {
		return nil
	}
	noObject := func(item any) bool { _, isObject := item.(map[string]any); return item != nil && !isObject }
	if i := slices.IndexFunc(items, noObject); i >= 0 && s.ListType == "map" && most > 0 {
		return field.ErrorList{field.Invalid(at.Index(i), items[i], "must be an object in a map")}
	}
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		if len(wrong) == most {
			return wrong
		}
		identity := item
		if s.ListType == "map" {
			identity = s.keysOf(item)
		}
		text, err := json.Marshal(identity) // which sorts the fields of objects
		if err == nil && seen[string(text)] {
			wrong = append(wrong, field.Duplicate(at.Index(i), identity))
		}
		seen[string(text)] = true
	}
	return wrong
}

// keysOf returns the fields by which an item of a map is identified. Null has none.
func (s *schema) keysOf(item any) any {
	fields, isObject := item.(map[string]any)
	if !isObject && item != nil {
		return item // whose type is wrong
	}
	keys := map[string]any{}
	for _, name := range s.ListKeys {
		if value, found := fields[name]; found {
			keys[name] = value
		}
	}
	return keys
}

// checkEmbedded returns what is wrong with the kind and the metadata of a resource inside of
// the object.
func (s *schema) checkEmbedded(value any, at *field.Path) (wrong field.ErrorList) {
	fields, isObject := value.(map[string]any)
	if !s.Embedded || !isObject {
		return nil
	}
	wrong = append(wrong, checkText(fields, at, "apiVersion", func(text string) string {
		if _, err := runtimeschema.ParseGroupVersion(text); err != nil {
			return err.Error()
		}
		return ""
	})...)
	wrong = append(wrong, checkText(fields, at, "kind", func(text string) string {
		if wrong := utilvalidation.IsDNS1035Label(strings.ToLower(text)); len(wrong) > 0 {
			return "may have upper case letters, but is otherwise " + strings.Join(wrong, "; ")
		}
		return ""
	})...)
	if metadata, found := fields["metadata"]; found {
		wrong = append(wrong, checkMetadata(metadata, at.Child("metadata"))...)
	}
	return wrong
}

// checkText returns what is wrong with a field that must be a text, and one in which problem
// finds none.
func checkText(fields map[string]any, at *field.Path, name string, problem func(string) string) field.ErrorList {
	at = at.Child(name)
	value, found := fields[name]
	text, isText := value.(string)
	switch {
	case !found:
		return field.ErrorList{field.Required(at, "must not be empty")}
	case !isText:
		return field.ErrorList{field.Invalid(at, value, "must be a string")}
	case text == "":
		return field.ErrorList{field.Invalid(at, text, "must not be empty")}
	}
	if p := problem(text); p != "" {
		return field.ErrorList{field.Invalid(at, text, p)}
	}
	return nil
}

// checkMetadata returns what is wrong with the metadata of a resource, which need not have a
// name.
func checkMetadata(value any, at *field.Path) field.ErrorList {
	var m metav1.ObjectMeta
	text, err := json.Marshal(value)
	if _, isObject := value.(map[string]any); err == nil && isObject {
		err = json.Unmarshal(text, &m)
	} else if err == nil {
		return field.ErrorList{field.Invalid(at, value, "must be an object")}
	}
	if err != nil {
		return field.ErrorList{field.Invalid(at, value, err.Error())}
	}
	m.Name = cmp.Or(m.Name, "unnamed")
	return validation.ValidateObjectMeta(&m, m.Namespace != "", checkSegment, at)
}

// checkSegment returns what is wrong with a name as a segment of a path, or with the beginning
// of one.
func checkSegment(name string, prefix bool) []string {
	switch {
	case !prefix && (name == "." || name == ".."):
		return []string{"must not be . or .."}
	case strings.ContainsAny(name, "/%"):
		return []string{"must not contain / or %"}
	}
	return nil
}
