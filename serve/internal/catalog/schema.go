package catalog

import "encoding/json"

// commonFields describe the fields that every object has, for schemas that do not.
var commonFields = map[string]map[string]any{
	"apiVersion": described("string", "APIVersion defines the group and version of the kind, such as example.com/v1."),
	"kind":       described("string", "The kind of the object."),
	"metadata": {
		"type": "object", "description": "Standard object's metadata: what objects of all kinds have, such as a name and labels.",
		"properties": map[string]any{
			"name":                       described("string", "The name, unique among the objects of the kind in the namespace. It cannot be changed."),
			"generateName":               described("string", "What the name begins with, if the server is to choose it."),
			"namespace":                  described("string", "The namespace, for kinds that have any. It cannot be changed."),
			"labels":                     stringMap("Names and values by which selectors find the object."),
			"annotations":                stringMap("Names and values of any kind, which no selector finds."),
			"uid":                        described("string", "The identity of this object, which no other has, even of the same name. The server sets it."),
			"resourceVersion":            described("string", "The revision of the last change. An update with another one is a conflict."),
			"generation":                 described("integer", "The number of changes of the desired state. The server sets it."),
			"creationTimestamp":          described("string", "CreationTimestamp is a timestamp that the server sets: when it created the object."),
			"deletionTimestamp":          described("string", "When the object was, or is to be, deleted. The server sets it."),
			"deletionGracePeriodSeconds": described("integer", "How many seconds lie between the deletion and its time."),
			"finalizers":                 merged(listOf("Names of what has to be done before the object is gone.", map[string]any{"type": "string"}), ""),
			"ownerReferences":            merged(listOf("The objects on which this one depends.", map[string]any{"type": "object"}), "uid"),
			"managedFields":              listOf("Which manager has set which fields. The server sets it.", map[string]any{"type": "object"}),
		},
	},
}

// listMetadata describes the metadata of lists.
var listMetadata = map[string]any{
	"type": "object", "description": "What lists of all kinds have, such as a resourceVersion.",
	"properties": map[string]any{
		"resourceVersion":    described("string", "The revision that the list is of, from which a watch continues it."),
		"continue":           described("string", "The token for the next page; empty on the last one."),
		"remainingItemCount": described("integer", "The number of objects after this page, if it is known."),
	},
}

// The names of the schemas of metadata, for documents that have them: those of Kubernetes.
const (
	objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	listMeta   = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
)

// metadataFields are the schemas of metadata by their names.
var metadataFields = map[string]map[string]any{objectMeta: commonFields["metadata"], listMeta: listMetadata}

func described(kind, description string) map[string]any {
	return map[string]any{"type": kind, "description": description}
}

func stringMap(description string) map[string]any {
	return map[string]any{"type": "object", "description": description, "additionalProperties": map[string]any{"type": "string"}}
}

func listOf(description string, items map[string]any) map[string]any {
	return map[string]any{"type": "array", "description": description, "items": items}
}

// merged returns the schema of a list with how it merges: by a key of its items or, if that is
// empty, as a set.
func merged(list map[string]any, key string) map[string]any {
	list["x-kubernetes-patch-strategy"], list["x-kubernetes-list-type"] = "merge", "set"
	if key != "" {
		list["x-kubernetes-patch-merge-key"], list["x-kubernetes-list-type"], list["x-kubernetes-list-map-keys"] = key, "map", []string{key}
	}
	return list
}

// describe returns a kind's schema as documents have it: marked with the kind, and with
// descriptions of the common fields.
func describe(schema json.RawMessage, k discoveryKind) json.RawMessage {
	fields, err := parts[json.RawMessage](schema)
	if err != nil {
		return schema // it is not a JSON object, and is shown as it was given
	}
	fields["x-kubernetes-group-version-kind"], _ = json.Marshal([]discoveryKind{k})
	if properties, err := parts[json.RawMessage](fields["properties"]); err == nil {
		for name, common := range commonFields {
			properties[name] = withCommon(properties[name], common)
		}
		fields["properties"], _ = json.Marshal(properties)
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return schema
	}
	return out
}

// describeList returns the schema of a list, whose kind is k, of the objects that the component
// describes.
func describeList(component string, k discoveryKind) json.RawMessage {
	out, _ := json.Marshal(map[string]any{ // cannot fail: it is texts, and lists and maps of them
		"type": "object", "description": "A " + k.Kind + " is a list of objects.", "required": []string{"items"},
		"x-kubernetes-group-version-kind": []discoveryKind{k},
		"properties": map[string]any{
			"apiVersion": commonFields["apiVersion"], "kind": commonFields["kind"],
			"metadata": listMetadata,
			"items":    listOf("The objects.", map[string]any{"$ref": refV3 + component}),
		},
	})
	return out
}

// parts returns the fields of a JSON object, which may be nil or null: then there are none.
func parts[T any](object json.RawMessage) (map[string]T, error) {
	fields := map[string]T{}
	if object == nil {
		return fields, nil
	}
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	if fields == nil { // which null makes it
		fields = map[string]T{}
	}
	return fields, nil
}

// withCommon returns the schema of a common field with what it lacks.
func withCommon(schema json.RawMessage, common map[string]any) json.RawMessage {
	fields, err := parts[any](schema)
	if err != nil {
		return schema
	}
	if _, refers := fields["$ref"]; refers || fields["allOf"] != nil {
		return schema
	}
	for name, value := range common {
		if _, given := fields[name]; !given {
			fields[name] = value
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return schema
	}
	return out
}
