package apiextensions

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
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

// maxGone is how many paths of removed keywords are reported. A definition has room for a
// hundred thousand of them.
const maxGone = 100

// keywordPruning removes the keywords that schemas do not have, and notes the paths of the first.
type keywordPruning struct{ gone []string }

// pruneSchemas removes the keywords that schemas do not have from those of a definition, and
// returns the paths of the first hundred. One that is misspelled would have no effect.
func pruneSchemas(o *object) (gone []string) {
	p := &keywordPruning{}
	for i, v := range items(part(o.Object, "spec"), "versions") {
		p.prune(part(part(v, "schema"), "openAPIV3Schema"), field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema"))
	}
	return p.gone
}

// prune is pruneSchemas of one schema, which is at that path.
func (p *keywordPruning) prune(s map[string]any, at *field.Path) {
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		switch {
		case slices.Contains(schemasByName, keyword):
			named := part(s, keyword)
			for _, name := range slices.Sorted(maps.Keys(named)) {
				p.prune(part(named, name), at.Child(keyword, shortened(name)))
			}
		case slices.Contains(schemasInList, keyword):
			for i, one := range items(s, keyword) {
				p.prune(one, at.Child(keyword).Index(i))
			}
		case slices.Contains(oneSchema, keyword):
			p.prune(part(s, keyword), at.Child(keyword))
		case !slices.Contains(keywords, keyword):
			delete(s, keyword)
			if len(p.gone) < maxGone {
				p.gone = append(p.gone, at.Child(shortened(keyword)).String())
			}
		}
	}
}
