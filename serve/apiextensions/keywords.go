package apiextensions

import (
	"fmt"
	"maps"
	"slices"
)

// keywords are those that a schema may have besides those with schemas in them.
var keywords = []string{
	"id", "$schema", "$ref", "description", "type", "format", "title", "default", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
	"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties", "minProperties", "required",
	"externalDocs", "example", "nullable", "dependencies", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
	"x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations",
}

// The keywords with schemas in them: by name, in a list, or one.
var (
	schemasByName = []string{"properties", "patternProperties", "definitions"}
	schemasInList = []string{"allOf", "anyOf", "oneOf"}
	oneSchema     = []string{"items", "additionalProperties", "additionalItems", "not"}
)

// pruneSchemas removes the keywords that schemas do not have from those of a definition, and
// returns their paths. One that is misspelled would have no effect.
func pruneSchemas(o *object) (gone []string) {
	for i, v := range items(part(o.Object, "spec"), "versions") {
		gone = append(gone, pruneSchema(part(part(v, "schema"), "openAPIV3Schema"), fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", i))...)
	}
	return gone
}

// pruneSchema is pruneSchemas of one schema, which is at that path.
func pruneSchema(s map[string]any, path string) (gone []string) {
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		at := path + "." + keyword
		switch {
		case slices.Contains(schemasByName, keyword):
			named := part(s, keyword)
			for _, name := range slices.Sorted(maps.Keys(named)) {
				gone = append(gone, pruneSchema(part(named, name), at+"."+name)...)
			}
		case slices.Contains(schemasInList, keyword):
			for i, one := range items(s, keyword) {
				gone = append(gone, pruneSchema(one, fmt.Sprintf("%s[%d]", at, i))...)
			}
		case slices.Contains(oneSchema, keyword):
			gone = append(gone, pruneSchema(part(s, keyword), at)...)
		case !slices.Contains(keywords, keyword):
			delete(s, keyword)
			gone = append(gone, at)
		}
	}
	return gone
}
