package crd

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
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

// additional is a schema of further properties, or whether there may be any.
type additional struct {
	allowed bool
	schema  *schema
}

// UnmarshalJSON reads a boolean or a schema.
func (a *additional) UnmarshalJSON(text []byte) error {
	if string(text) == "true" || string(text) == "false" {
		a.allowed = text[0] == 't'
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
	return s, s.check("")
}

// check refuses a property that is null in the manifest, or that cannot be as it is.
func (s *schema) check(path string) error {
	if s == nil {
		return nil
	}
	if err := s.checkSelf(path); err != nil {
		return err
	}
	for name, property := range s.Properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		if property == nil {
			return fmt.Errorf("the property %s has no schema: give at least its type", shortened(at))
		}
		if err := property.check(at); err != nil {
			return err
		}
	}
	if s.Additional != nil {
		if err := s.Additional.schema.check(path + ".*"); err != nil {
			return err
		}
	}
	return s.Items.check(path + "[*]")
}

// objectFields are the fields of every object, whatever its schema.
var objectFields = []string{"apiVersion", "kind", "metadata"}

// root returns the schema as that of an object, which itself is a resource.
func (s *schema) root() *schema {
	root := *s
	root.Embedded = true
	return &root
}

// pruneRoot removes the unknown fields of an object, and returns their paths.
func (s *schema) pruneRoot(fields map[string]any) []string { return s.root().prune(fields, "") }

// prune removes the unknown fields of a value, except in the object's own metadata, which is
// decoded before.
func (s *schema) prune(value any, path string) (gone []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := name
			if path != "" {
				at = path + "." + name
			}
			gone = append(gone, s.pruneField(v, name, at)...)
		}
	case []any:
		if s.Items == nil {
			return nil
		}
		for i, item := range v {
			gone = append(gone, s.Items.prune(item, path+"["+strconv.Itoa(i)+"]")...)
		}
	}
	return gone
}

// pruneField removes one field if it is unknown; otherwise the unknown fields in it.
func (s *schema) pruneField(fields map[string]any, name, path string) []string {
	property := s.Properties[name]
	switch {
	case s.Embedded && path == "metadata":
		return nil
	case s.Embedded && name == "metadata":
		return pruneMetadata(fields, path)
	case s.Embedded && slices.Contains(objectFields, name):
		return nil
	case property != nil:
		return property.prune(fields[name], path)
	case s.Additional != nil && s.Additional.schema != nil:
		return s.Additional.schema.prune(fields[name], path)
	case s.Open || s.Additional != nil && s.Additional.allowed:
		return nil
	}
	delete(fields, name)
	return []string{path}
}

// pruneMetadata removes the unknown fields of the metadata of a resource inside of the object,
// and metadata that is null. What is wrong with the others is for validation.
func pruneMetadata(fields map[string]any, path string) (gone []string) {
	clean, unknown, err := layout.Metadata(fields["metadata"])
	switch {
	case err != nil:
		return nil
	case clean == nil:
		delete(fields, "metadata")
		return nil
	}
	fields["metadata"] = clean
	for _, err := range unknown {
		var of kjson.FieldError
		if errors.As(err, &of) {
			gone = append(gone, path+strings.TrimPrefix(of.FieldPath(), "metadata"))
		}
	}
	return gone
}

// setDefaults sets fields that are missing, or null where null is not allowed, to their
// defaults. Without a default such a null is dropped, as Kubernetes does.
func (s *schema) setDefaults(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, property := range s.Properties {
			property.setDefault(v, name)
		}
		if s.Additional != nil && s.Additional.schema != nil {
			for name := range v {
				if s.Properties[name] == nil {
					s.Additional.schema.setDefault(v, name)
				}
			}
		}
	case []any:
		if s.Items != nil {
			for i, item := range v {
				if item == nil && !s.Items.Nullable {
					v[i] = runtime.DeepCopyJSONValue(s.Items.Default)
				}
				s.Items.setDefaults(v[i])
			}
		}
	}
}

// setDefault is setDefaults of one field, of which s is the schema.
func (s *schema) setDefault(fields map[string]any, name string) {
	present, found := fields[name]
	if !found || present == nil && !s.Nullable {
		if s.Default == nil {
			delete(fields, name)
			return
		}
		fields[name] = runtime.DeepCopyJSONValue(s.Default)
	}
	s.setDefaults(fields[name])
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
