package crd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/registry/internal/layout"
)

// schema is the part of a structural schema that pruning, defaults and checks need.
type schema struct {
	Type       string             `json:"type"`
	Pattern    string             `json:"pattern"`
	Ref        string             `json:"$ref"`
	Properties map[string]*schema `json:"properties"`
	Additional *additional        `json:"additionalProperties"`
	Items      *schema            `json:"items"`
	Default    any                `json:"default"`
	Nullable   bool               `json:"nullable"`
	Open       bool               `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrText  bool               `json:"x-kubernetes-int-or-string"`
	Embedded   bool               `json:"x-kubernetes-embedded-resource"`
	ListType   string             `json:"x-kubernetes-list-type"`
	ListKeys   []string           `json:"x-kubernetes-list-map-keys"`
	Rules      []any              `json:"x-kubernetes-validations"`
}

// additional is the schema of further properties, nil if it only says whether there may be any.
type additional struct{ schema *schema }

// UnmarshalJSON reads a boolean or a schema.
func (a *additional) UnmarshalJSON(text []byte) error {
	if string(text) == "true" || string(text) == "false" {
		return nil
	}
	a.schema = &schema{}
	return kjson.UnmarshalCaseSensitivePreserveInts(text, a.schema)
}

// parseSchema reads a schema.
func parseSchema(text []byte) (*schema, error) {
	s := &schema{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, s); err != nil {
		return nil, err
	}
	if err := s.check(nil); err != nil {
		return nil, err
	}
	s.openItems()
	return s, nil
}

// openItems makes the items of a list that keeps unknown fields keep their own unknown fields,
// too, as in Kubernetes. The fields of an object that does so obey their own schemas.
func (s *schema) openItems() {
	if s == nil {
		return
	}
	if s.Items != nil {
		s.Items.Open = s.Items.Open || s.Open
		s.Items.openItems()
	}
	for _, property := range s.Properties {
		property.openItems()
	}
	if s.Additional != nil {
		s.Additional.schema.openItems()
	}
}

// undescribed is the schema of a value that the schema does not describe: neither it nor its items have
// fields.
var undescribed = &schema{}

// ofItems is the schema by which the items of a list are pruned, nil if they are kept as they are.
func (s *schema) ofItems() *schema {
	if s.Items == nil && !s.Open {
		return undescribed
	}
	return s.Items
}

// ofFurther is the schema by which the values of fields that are not properties are pruned, nil if
// there are none. If additionalProperties is a boolean it does not describe them: validation refuses
// them if it is false.
func (s *schema) ofFurther() *schema {
	if s.Additional != nil && s.Additional.schema == nil {
		return undescribed
	}
	if s.Additional != nil {
		return s.Additional.schema
	}
	return nil
}

// check refuses a property that is null in the manifest, or that cannot be as it is. The path is nil for
// the object.
func (s *schema) check(at *field.Path) error {
	if s == nil {
		return nil
	}
	if err := s.checkSelf(at); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property, below := s.Properties[name], at.Child(shortened(name))
		if property == nil {
			return fmt.Errorf("the property %s has no schema: give at least its type", place(below.String()))
		}
		if err := property.check(below); err != nil {
			return err
		}
	}
	if s.Additional != nil {
		if err := s.Additional.schema.check(at.Child("*")); err != nil {
			return err
		}
	}
	return s.Items.check(at.Key("*"))
}

// objectFields are the fields of every object, whatever its schema.
var objectFields = []string{"apiVersion", "kind", "metadata"}

// mayHave reports whether the values of the schema may have a field, at that path of names.
func (s *schema) mayHave(names []string) bool {
	for _, name := range names {
		if s.Open || s.Embedded {
			return true
		}
		property := s.Properties[name]
		if property == nil {
			property = s.ofFurther()
		}
		if s = property; s == nil {
			return false
		}
	}
	return true
}

// hasObjectField reports whether a field is one that an object has whatever its schema.
func (s *schema) hasObjectField(name string) bool {
	return s.Embedded && slices.Contains(objectFields, name)
}

// root returns the schema as that of an object, which itself is a resource.
func (s *schema) root() *schema {
	root := *s
	root.Embedded = true
	return &root
}

// pruneRoot removes the unknown fields of an object, and returns the paths of the first hundred.
func (s *schema) pruneRoot(fields map[string]any) []string {
	p := &pruning{}
	p.prune(s.root(), fields, nil)
	return p.gone
}

// maxGone is how many paths of removed fields are reported. A body has room for a hundred
// thousand of them below one name of a megabyte, which each path has.
const maxGone = 100

// pruning removes unknown fields, and notes the paths of the first.
type pruning struct{ gone []string }

// prune removes the unknown fields of a value, except in the object's own metadata, which is
// decoded before.
func (p *pruning) prune(s *schema, value any, at *field.Path) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			p.pruneField(s, v, name, at)
		}
	case []any:
		of := s.ofItems()
		if of == nil {
			return
		}
		for i, item := range v {
			p.prune(of, item, at.Index(i))
		}
	}
}

// pruneField removes a field of an object, which is at that path, if it is unknown, and otherwise
// the unknown fields in it.
func (p *pruning) pruneField(s *schema, fields map[string]any, name string, at *field.Path) {
	property := s.Properties[name]
	switch {
	case s.Embedded && name == "metadata":
		if at != nil {
			p.pruneMetadata(fields, at.Child(name))
		}
	case s.hasObjectField(name):
	case property != nil:
		p.prune(property, fields[name], at.Child(shortened(name)))
	case s.Additional != nil:
		p.prune(s.ofFurther(), fields[name], at.Child(shortened(name)))
	case s.Open:
	default:
		delete(fields, name)
		p.note(at.Child(shortened(name)), "")
	}
}

// note notes that what is below a path was removed.
func (p *pruning) note(at *field.Path, below string) {
	if len(p.gone) < maxGone {
		p.gone = append(p.gone, place(at.String()+below))
	}
}

// pruneMetadata removes the unknown fields of the metadata of a resource inside of the object, and
// metadata that is null, which in Kubernetes becomes an empty object. Validation finds what is wrong with
// the known ones.
func (p *pruning) pruneMetadata(fields map[string]any, at *field.Path) {
	clean, unknown, err := layout.Metadata(fields["metadata"])
	switch {
	case err != nil:
		return
	case clean == nil:
		delete(fields, "metadata")
		return
	}
	fields["metadata"] = clean
	for _, err := range unknown {
		if of, ok := errors.AsType[kjson.FieldError](err); ok {
			p.note(at, strings.TrimPrefix(of.FieldPath(), "metadata"))
		}
	}
}

// rules counts the rules in CEL.
func (s *schema) rules() int {
	if s == nil {
		return 0
	}
	n := len(s.Rules) + s.Items.rules()
	for _, property := range s.Properties {
		n += property.rules()
	}
	if s.Additional != nil {
		n += s.Additional.schema.rules()
	}
	return n
}
