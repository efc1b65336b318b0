// Package keywords finds what the schemas of CustomResourceDefinitions do not have. Kubernetes
// drops such a keyword, which may be misspelled:
//
//	{type: integer, maximun: 5} ──Unknown──▶ maximun
package keywords

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/internal/excerpt"
)

// plain are the keywords that a schema may have besides those with schemas in them.
var plain = []string{
	"id", "$schema", "$ref", "description", "type", "format", "title", "default", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
	"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties", "minProperties", "required",
	"externalDocs", "example", "nullable", "dependencies", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
	"x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations",
}

// The keywords with schemas in them: by name, or one.
var (
	byName = []string{"properties", "patternProperties", "definitions"}
	one    = []string{"items", "additionalProperties", "additionalItems", "not"}
)

// InList are the keywords with a list of schemas.
var InList = []string{"allOf", "anyOf", "oneOf"}

// maxShown is how many bytes of a name a path shows.
const maxShown = 200

// Unknown calls found for each keyword that schemas do not have, in a schema and in those in it, in one
// order: with the mapping that has the keyword, which found may remove from it, and with its path below
// at, which may be nil. Names in paths are shortened.
func Unknown(schema map[string]any, at *field.Path, found func(in map[string]any, keyword string, at *field.Path)) {
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		below := at.Child(excerpt.Of(keyword, maxShown))
		switch {
		case slices.Contains(byName, keyword):
			named, _ := schema[keyword].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(named)) {
				of, _ := named[name].(map[string]any)
				Unknown(of, below.Child(excerpt.Of(name, maxShown)), found)
			}
		case slices.Contains(InList, keyword):
			list, _ := schema[keyword].([]any)
			for i, item := range list {
				of, _ := item.(map[string]any)
				Unknown(of, below.Index(i), found)
			}
		case slices.Contains(one, keyword):
			of, _ := schema[keyword].(map[string]any)
			Unknown(of, below, found)
		case !slices.Contains(plain, keyword):
			found(schema, keyword, below)
		}
	}
}
