package crd

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmill/watchmill/registry"
)

// forms are the schemas of all versions of a kind, by which objects are stored in one of them and
// shown in each.
//
//	a write in v1 ──▶ pruned by the schema of the storage version ──▶ storage
//	a read in v1  ◀── pruned by that of v1 ◀── pruned, with defaults, by that of the version in storage
type forms struct {
	group, stored string // the version
	// whole are the schemas by version, and bare are those without defaults, which only prune.
	whole, bare map[string]*schema
	// texts are the schemas as the manifest has them, none if the versions have to be converted.
	texts map[string]json.RawMessage
}

// addForms gives the definitions the schemas of all versions, except versions that are not served
// and have no usable schema. The schemas of the definitions themselves have been read already.
func (m *manifest) addForms(all []*Definition) {
	f := &forms{m.Spec.Group, m.stored().Name, map[string]*schema{}, map[string]*schema{}, map[string]json.RawMessage{}}
	for _, d := range all {
		d.forms = f
		f.add(d.Kind.Version, d.schema)
	}
	for i := range m.Spec.Versions {
		v := &m.Spec.Versions[i]
		if len(v.Schema.OpenAPI) > 0 && !m.converts() {
			f.texts[v.Name] = v.Schema.OpenAPI
		}
		if f.whole[v.Name] != nil {
			continue
		}
		if s, err := m.schemaOf(v); err == nil {
			f.add(v.Name, s)
		}
	}
}

// add adds the schema of a version.
func (f *forms) add(version string, s *schema) {
	whole := s.root()
	f.whole[version], f.bare[version] = whole, whole.withoutDefaults()
}

// conversion returns how objects of this version are stored and read.
func (d *Definition) conversion() *registry.Conversion[unstructured.Unstructured] {
	return &registry.Conversion[unstructured.Unstructured]{ToStorage: d.toStorage, FromStorage: d.fromStorage}
}

// toStorage returns an object of this version in the storage version.
func (d *Definition) toStorage(o unstructured.Unstructured) (stored unstructured.Unstructured, differs bool) {
	if d.Kind.Version == d.forms.stored {
		return d.forms.conformed(o, d.Kind.Version, d.forms.whole[d.Kind.Version])
	}
	return d.forms.conformed(o, d.forms.stored, d.forms.bare[d.forms.stored])
}

// fromStorage returns an object from storage in this version. An object of a version that there is
// no longer is taken for one of the storage version.
func (d *Definition) fromStorage(stored unstructured.Unstructured) (o unstructured.Unstructured, differs bool) {
	of := strings.TrimPrefix(stored.GetAPIVersion(), d.forms.group+"/")
	if d.forms.whole[of] == nil {
		of = d.forms.stored
	}
	if of == d.Kind.Version {
		return d.forms.conformed(stored, of, d.forms.whole[of])
	}
	return d.forms.conformed(stored, d.Kind.Version, d.forms.whole[of], d.forms.bare[d.Kind.Version])
}

// conformed returns an object of that version as the schemas, one after the other, have it.
func (f *forms) conformed(o unstructured.Unstructured, version string, by ...*schema) (conformed unstructured.Unstructured, differs bool) {
	for _, s := range by {
		if s.conforms(o.Object, true) {
			continue
		}
		o = unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.Object)}
		new(pruning).prune(s, o.Object, nil)
		s.completeStored(o.Object)
		differs = true
	}
	if apiVersion := f.group + "/" + version; o.GetAPIVersion() != apiVersion {
		o = unstructured.Unstructured{Object: maps.Clone(o.Object)}
		o.SetAPIVersion(apiVersion)
		differs = true
	}
	return o, differs
}

// conforms reports whether defaults and, if it prunes, pruning would leave a value as it is. Pruning has
// cleaned the metadata of resources inside of the object when it was written: it is not looked at.
func (s *schema) conforms(value any, prunes bool) bool {
	switch v := value.(type) {
	case map[string]any:
		return s.fieldsConform(v, prunes) && s.propertiesConform(v, prunes)
	case []any:
		of := s.ofItems()
		if of == nil {
			return true
		}
		return !slices.ContainsFunc(v, func(item any) bool {
			return item == nil && !of.Nullable && of.Default != nil || !of.conforms(item, prunes)
		})
	}
	return true
}

// fieldsConform is conforms for the fields of an object that are not properties.
func (s *schema) fieldsConform(fields map[string]any, prunes bool) bool {
	for name, value := range fields {
		switch {
		case s.Properties[name] != nil || s.hasObjectField(name):
		case s.Additional != nil:
			if of := s.ofFurther(); value == nil && of != undescribed && !of.Nullable || !of.conforms(value, prunes) {
				return false
			}
		case s.Open:
		case prunes:
			return false
		}
	}
	return true
}

// propertiesConform is conforms for the properties of an object, there and missing.
func (s *schema) propertiesConform(fields map[string]any, prunes bool) bool {
	for name, of := range s.Properties {
		value, found := fields[name]
		if !found && of.Default != nil || found && value == nil && !of.Nullable {
			return false
		}
		if !of.conforms(value, prunes && !s.hasObjectField(name)) {
			return false
		}
	}
	return true
}

// withoutDefaults returns a schema that sets no defaults, and leaves null where there is one.
func (s *schema) withoutDefaults() *schema {
	if s == nil {
		return nil
	}
	bare := *s
	bare.Nullable, bare.Default = s.Nullable || s.Default != nil, nil
	bare.Items = s.Items.withoutDefaults()
	bare.Properties = maps.Clone(s.Properties)
	for name, property := range bare.Properties {
		bare.Properties[name] = property.withoutDefaults()
	}
	if s.Additional != nil {
		bare.Additional = &additional{s.Additional.schema.withoutDefaults()}
	}
	return &bare
}
