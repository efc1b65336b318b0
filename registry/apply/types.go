package apply

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/watchmill/watchmill/registry"
)

// metadataSchema says how the parts of metadata merge, which schemas of kinds leave out. It allows no
// further properties, even if the object around it keeps unknown fields. As in Kubernetes an owner without a uid
// merges as one whose uid is empty, which the rules of metadata refuse by the name of the field.
const metadataSchema = `{
	"type": "object",
	"additionalProperties": false,
	"properties": {
		"name": {"type": "string"},
		"generateName": {"type": "string"},
		"namespace": {"type": "string"},
		"selfLink": {"type": "string"},
		"uid": {"type": "string"},
		"resourceVersion": {"type": "string"},
		"generation": {"type": "integer", "format": "int64"},
		"creationTimestamp": {"type": "string", "format": "date-time", "nullable": true},
		"deletionTimestamp": {"type": "string", "format": "date-time", "nullable": true},
		"deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
		"labels": {"type": "object", "additionalProperties": {"type": "string"}},
		"annotations": {"type": "object", "additionalProperties": {"type": "string"}},
		"finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
		"ownerReferences": {
			"type": "array",
			"x-kubernetes-list-type": "map",
			"x-kubernetes-list-map-keys": ["uid"],
			"items": {
				"type": "object",
				"x-kubernetes-map-type": "atomic",
				"additionalProperties": false,
				"properties": {
					"apiVersion": {"type": "string"},
					"kind": {"type": "string"},
					"name": {"type": "string"},
					"uid": {"type": "string", "default": ""},
					"controller": {"type": "boolean"},
					"blockOwnerDeletion": {"type": "boolean"}
				}
			}
		},
		"managedFields": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	}
}`

// typesOf returns a converter that gives the kind's objects the types by which they
// merge. With open they may have fields that the schema does not have, and the schema then says so.
func typesOf(kind registry.Kind, root *spec.Schema, open bool) (managedfields.TypeConverter, error) {
	if open {
		allowUnknown(root)
	}
	gvk := kind.GroupVersionKind()
	root.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
	})
	return managedfields.NewTypeConverter(map[string]*spec.Schema{gvk.String(): root}, false)
}

// completed returns the schema with apiVersion, kind and metadata.
func completed(schema json.RawMessage) (*spec.Schema, error) {
	root, metadata := &spec.Schema{}, spec.Schema{}
	if err := json.Unmarshal(schema, root); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(metadataSchema), &metadata); err != nil {
		return nil, err
	}
	addObjectFields(root, metadata)
	completeEmbedded(root, metadata)
	return root, nil
}

// addObjectFields adds apiVersion, kind and metadata to the schema of an object. A schema
// without properties allows all fields.
func addObjectFields(s *spec.Schema, metadata spec.Schema) {
	if len(s.Properties) == 0 {
		if s.AdditionalProperties == nil {
			s.AddExtension("x-kubernetes-preserve-unknown-fields", true)
		}
		s.Properties = map[string]spec.Schema{}
	}
	s.Properties["apiVersion"] = *spec.StringProperty()
	s.Properties["kind"] = *spec.StringProperty()
	s.Properties["metadata"] = metadata
}

// completeEmbedded does the same for embedded objects.
func completeEmbedded(s *spec.Schema, metadata spec.Schema) {
	if embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); embedded {
		addObjectFields(s, metadata)
	}
	for name, property := range s.Properties {
		completeEmbedded(&property, metadata)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		completeEmbedded(s.Items.Schema, metadata)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		completeEmbedded(s.AdditionalProperties.Schema, metadata)
	}
}

// allowUnknown allows objects to have fields that their schema does not have.
func allowUnknown(s *spec.Schema) {
	if len(s.Properties) > 0 {
		s.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	}
	for name, property := range s.Properties {
		allowUnknown(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		allowUnknown(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		allowUnknown(s.AdditionalProperties.Schema)
	}
}
