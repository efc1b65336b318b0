package apiextensions

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/internal/keywords"
)

// inStructure are the keywords that say what there is. A schema below allOf, anyOf, oneOf and
// not can only say more of it.
var inStructure = []string{
	"type", "additionalProperties", "default", "title", "description", "nullable",
	"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
	"x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations",
}

// integerOrString is how schemas say, as an alternative to x-kubernetes-int-or-string, that a value may be either.
var integerOrString = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}

// nested calls do of each schema below a junctor of s, which is at that path.
func nested(s map[string]any, at *field.Path, do func(below map[string]any, at *field.Path)) {
	for _, junctor := range keywords.InList {
		for i, below := range items(s, junctor) {
			do(below, at.Child(junctor).Index(i))
		}
	}
	if below := part(s, "not"); below != nil {
		do(below, at.Child("not"))
	}
}

// checkJunctors checks the schemas below the junctors of a schema that says which fields there are.
// They have types only in its anyOf, or in that of the first of allOf: integer or string.
func (r *schemaRules) checkJunctors(s map[string]any, at *field.Path) {
	s = withoutEither(s)
	if all := items(s, "allOf"); len(all) > 0 {
		rest := slices.Clone(s["allOf"].([]any))
		rest[0] = withoutEither(all[0])
		s = maps.Clone(s)
		s["allOf"] = rest
	}
	nested(s, at, r.checkNested)
}

// withoutEither returns a schema without an anyOf that says that the value is an integer or a string.
func withoutEither(s map[string]any) map[string]any {
	if !reflect.DeepEqual(s["anyOf"], integerOrString) {
		return s
	}
	rest := maps.Clone(s)
	delete(rest, "anyOf")
	return rest
}

// checkNested checks a schema below a junctor, and those in it.
func (r *schemaRules) checkNested(s map[string]any, at *field.Path) {
	r.checkKeywords(s, at)
	for _, keyword := range inStructure {
		if given(s, keyword) {
			r.forbid(at.Child(keyword), "must not be below allOf, anyOf, oneOf and not: say it outside of them")
		}
	}
	if _, err := regexp.Compile(text(s, "pattern")); err != nil {
		r.refuse(at.Child("pattern"), text(s, "pattern"), "does not parse: "+err.Error())
	}
	eachProperty(s, at, func(name string, property map[string]any, at *field.Path) {
		if name == "metadata" {
			r.forbid(at, "must not be below allOf, anyOf, oneOf and not")
		}
		r.checkNested(property, at)
	})
	if below := part(s, "items"); below != nil {
		r.checkNested(below, at.Child("items"))
	}
	nested(s, at, r.checkNested)
}

// checkComplete demands that the fields and items which schemas below the junctors of s mention are in
// the structure, which is at path of. Kubernetes does so for the junctors of the object.
func (r *schemaRules) checkComplete(s, structure map[string]any, at, of *field.Path) {
	nested(s, at, func(below map[string]any, at *field.Path) {
		r.checkMentioned(below, structure, at, of)
	})
}

// checkMentioned is checkComplete for one schema below a junctor.
func (r *schemaRules) checkMentioned(s, structure map[string]any, at, of *field.Path) {
	check := func(below, counterpart map[string]any, at, of *field.Path) {
		if counterpart == nil {
			r.found(func() *field.Error {
				return field.Required(of, fmt.Sprintf("%s has a rule for it, so it must be defined here, too", at))
			})
			return
		}
		r.checkMentioned(below, counterpart, at, of)
	}
	eachProperty(s, at, func(name string, property map[string]any, at *field.Path) {
		check(property, part(part(structure, "properties"), name), at, of.Child("properties").Key(shortened(name)))
	})
	if below := part(s, "items"); below != nil {
		check(below, part(structure, "items"), at.Child("items"), of.Child("items"))
	}
	r.checkComplete(s, structure, at, of)
}
