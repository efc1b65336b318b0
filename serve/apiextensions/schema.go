package apiextensions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// schemaRules finds what Kubernetes refuses in a schema, besides what package crd cannot use.
// Such a schema would work here, and be refused by every cluster.
type schemaRules struct {
	// found is called for each error with a function that makes it, since that costs the text of its path.
	found func(wrong func() *field.Error)
}

// maxErrors is how many errors of the schemas of a definition are collected: it has room for a hundred
// thousand.
const maxErrors = 1000

// checkSchemas returns what Kubernetes refuses in the schemas of a definition, without what is known.
func checkSchemas(o *object, known errorSet) (wrong field.ErrorList) {
	eachSchemaError(o, func(next func() *field.Error) {
		if len(wrong) == maxErrors {
			return
		}
		if e := next(); !known.has(e) {
			wrong = append(wrong, e)
		}
	})
	slices.SortStableFunc(wrong, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return wrong
}

// schemaErrors returns all that Kubernetes refuses in the schemas of a definition.
func schemaErrors(o *object) errorSet {
	all := errorSet{}
	eachSchemaError(o, func(next func() *field.Error) { all.add(next()) })
	return all
}

// eachSchemaError calls found for each error in the schemas of a definition, with a function that makes it.
func eachSchemaError(o *object, found func(wrong func() *field.Error)) {
	r := &schemaRules{found}
	for i, v := range items(part(o.Object, "spec"), "versions") {
		schema, at := schemaOf(v), field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		_, hasStatus := part(v, "subresources")["status"].(map[string]any)
		r.checkRoot(schema, at, hasStatus)
		r.checkDefaults(schema, at)
		r.visit(schema, at)
	}
}

// schemaOf returns the schema of a version.
func schemaOf(version map[string]any) map[string]any {
	return part(part(version, "schema"), "openAPIV3Schema")
}

func (r *schemaRules) forbid(at *field.Path, why string) {
	r.found(func() *field.Error { return field.Forbidden(at, why) })
}

func (r *schemaRules) demand(at *field.Path, why string) {
	r.found(func() *field.Error { return field.Required(at, why) })
}

func (r *schemaRules) refuse(at *field.Path, value any, why string) {
	r.found(func() *field.Error { return field.Invalid(at, value, why) })
}

// eachProperty calls do of each property of a schema, which is at that path, in the order of their names.
func eachProperty(s map[string]any, at *field.Path, do func(name string, property map[string]any, at *field.Path)) {
	properties := part(s, "properties")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		do(name, part(properties, name), at.Child("properties").Key(shortened(name)))
	}
}

// besideStatus are the keywords that the schema of an object may have if its status is a
// subresource: without the others, the schema of the status is all that is said of the status.
var besideStatus = []string{
	"description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern",
	"maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items", "properties", "externalDocs", "example",
	"x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
}

// checkRoot checks what is special in the schema of an object. hasStatus: its version has the status
// subresource.
func (r *schemaRules) checkRoot(s map[string]any, at *field.Path, hasStatus bool) {
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if hasStatus && given(s, keyword) && !slices.Contains(besideStatus, keyword) {
			r.refuse(at, keyword, "only these keywords may be at the root if there is the status subresource: "+strings.Join(besideStatus, ", "))
		}
	}
	if given(s, "nullable") {
		r.forbid(at.Child("nullable"), "an object cannot be null")
	}
	if _, found := s["additionalProperties"]; found {
		r.forbid(at.Child("additionalProperties"), "must not be used at the root")
	}
	if _, found := s["default"]; found {
		r.forbid(at.Child("default"), "an object has no default")
	}
	r.checkComplete(s, s, at, at)
	r.checkObjectFields(s, at)
	properties := part(s, "properties")
	for name := range objectFields {
		r.forbidDefaults(part(properties, name), at.Child("properties").Key(name))
	}
	if saysTooMuch(part(properties, "metadata")) {
		r.forbid(at.Child("properties").Key("metadata"), "must not say more than the rules of name and generateName: the rest of metadata is the same in every kind")
	}
}

// saysTooMuch reports whether the schema of an object's metadata has more than rules of name and
// generateName. Its type and its defaults are checked elsewhere.
func saysTooMuch(metadata map[string]any) bool {
	for keyword := range metadata {
		if given(metadata, keyword) && !slices.Contains([]string{"type", "default", "properties"}, keyword) {
			return true
		}
	}
	for name := range part(metadata, "properties") {
		if name != "name" && name != "generateName" {
			return true
		}
	}
	return false
}

// objectFields are the fields that every object has, whatever its schema, with their types.
var objectFields = map[string]string{"apiVersion": "string", "kind": "string", "metadata": "object"}

// checkObjectFields checks the types that the schema of an object, or of a resource inside of it,
// gives the fields that every object has.
func (r *schemaRules) checkObjectFields(s map[string]any, at *field.Path) {
	for name, want := range objectFields {
		property, found := part(s, "properties")[name].(map[string]any)
		if found && text(property, "type") != want {
			r.refuse(at.Child("properties").Key(name).Child("type"), text(property, "type"), "must be "+want)
		}
	}
}

// forbidDefaults refuses defaults in a field that every object has.
func (r *schemaRules) forbidDefaults(s map[string]any, at *field.Path) {
	if _, found := s["default"]; found {
		r.forbid(at.Child("default"), "must not be set in apiVersion, kind and metadata")
	}
	eachProperty(s, at, func(_ string, property map[string]any, at *field.Path) { r.forbidDefaults(property, at) })
}

// visit checks a schema that says which fields there are, and those in it.
func (r *schemaRules) visit(s map[string]any, at *field.Path) {
	r.checkKeywords(s, at)
	r.checkFields(s, at)
	r.checkList(s, at)
	r.checkJunctors(s, at)
	eachProperty(s, at, func(_ string, property map[string]any, at *field.Path) { r.visit(property, at) })
	if further := part(s, "additionalProperties"); further != nil {
		r.visit(further, at.Child("additionalProperties"))
	}
	if items := part(s, "items"); items != nil {
		r.visit(items, at.Child("items"))
	}
}

// checkDefaults refuses defaults with unknown fields. Kubernetes looks at none below additionalProperties.
func (r *schemaRules) checkDefaults(s map[string]any, at *field.Path) {
	if value := s["default"]; hasUnknown(value, s) {
		r.refuse(at.Child("default"), value, "must not have unknown fields")
	}
	eachProperty(s, at, func(_ string, property map[string]any, at *field.Path) { r.checkDefaults(property, at) })
	if items := part(s, "items"); items != nil {
		r.checkDefaults(items, at.Child("items"))
	}
}

// hasUnknown reports whether a value has fields that its schema does not have.
func hasUnknown(value any, s map[string]any) bool {
	switch v := value.(type) {
	case []any:
		of := part(s, "items")
		switch keeps := given(s, keepsUnknown); {
		case keeps && of == nil:
			return false
		case keeps: // and so do its items
			of = maps.Clone(of)
			of[keepsUnknown] = true
		}
		return slices.ContainsFunc(v, func(item any) bool { return hasUnknown(item, of) })
	case map[string]any:
		for name, inField := range v {
			if isUnknown(inField, name, s) {
				return true
			}
		}
	}
	return false
}

// isUnknown reports whether a schema does not have the field of that name, or one in its value.
func isUnknown(value any, name string, s map[string]any) bool {
	if property, found := part(s, "properties")[name].(map[string]any); found {
		return hasUnknown(value, property)
	}
	if s["additionalProperties"] != nil {
		return hasUnknown(value, part(s, "additionalProperties"))
	}
	embedded := given(s, "x-kubernetes-embedded-resource") && objectFields[name] != ""
	return !embedded && !given(s, keepsUnknown)
}

// keepsUnknown is the keyword of schemas whose objects may have any fields.
const keepsUnknown = "x-kubernetes-preserve-unknown-fields"

// unsupported are the keywords of OpenAPI that schemas of kinds cannot have.
var unsupported = []string{"id", "$schema", "$ref", "additionalItems", "patternProperties", "definitions", "dependencies"}

// checkKeywords refuses keywords that no schema can have, and values that they cannot have.
func (r *schemaRules) checkKeywords(s map[string]any, at *field.Path) {
	for _, keyword := range unsupported {
		if given(s, keyword) {
			r.forbid(at.Child(keyword), "is not supported")
		}
	}
	if _, several := s["items"].([]any); several {
		r.forbid(at.Child("items"), "must be one schema, and not a list of them")
	}
	if given(s, "uniqueItems") {
		r.forbid(at.Child("uniqueItems"), "would take too long to check: give x-kubernetes-list-type: set")
	}
	if keep, found := s[keepsUnknown].(bool); found && !keep {
		r.refuse(at.Child(keepsUnknown), keep, "must be true or left out")
	}
	if further, found := s["additionalProperties"]; found && further != true && given(s, "properties") {
		r.forbid(at.Child("additionalProperties"), "must not be set together with properties: the fields that an object has are either known or not")
	}
	mapType := text(s, "x-kubernetes-map-type")
	if mapType == "" {
		return
	}
	if mapType != "atomic" && mapType != "granular" {
		r.found(func() *field.Error {
			return field.NotSupported(at.Child("x-kubernetes-map-type"), mapType, []string{"atomic", "granular"})
		})
	}
	if text(s, "type") != "object" {
		r.refuse(at.Child("type"), text(s, "type"), "must be object together with x-kubernetes-map-type")
	}
}

// checkFields checks what a schema says of the fields of an object, and of resources inside of it.
func (r *schemaRules) checkFields(s map[string]any, at *field.Path) {
	embedded, open := given(s, "x-kubernetes-embedded-resource"), given(s, keepsUnknown)
	if given(s, "x-kubernetes-int-or-string") {
		if open {
			r.refuse(at.Child(keepsUnknown), true, "must not be set together with x-kubernetes-int-or-string")
		}
		if embedded {
			r.refuse(at.Child("x-kubernetes-embedded-resource"), true, "must not be set together with x-kubernetes-int-or-string")
		}
	}
	for i, rule := range items(s, "x-kubernetes-validations") {
		if strings.TrimSpace(text(rule, "rule")) == "" {
			r.demand(at.Child("x-kubernetes-validations").Index(i).Child("rule"), "give the expression that must hold")
		}
	}
	if !embedded {
		return
	}
	r.checkObjectFields(s, at)
	if _, found := s["additionalProperties"]; found {
		r.forbid(at.Child("additionalProperties"), "must not be set together with x-kubernetes-embedded-resource")
	}
	if !open && !given(s, "properties") {
		r.demand(at.Child("properties"), "give the fields of the resource, or x-kubernetes-preserve-unknown-fields: true")
	}
}

// checkList checks what a schema says of a list.
func (r *schemaRules) checkList(s map[string]any, at *field.Path) {
	item, listType := part(s, "items"), text(s, "x-kubernetes-list-type")
	if _, found := s["items"]; text(s, "type") == "array" && !found {
		r.demand(at.Child("items"), "give the schema of the items")
	}
	if listType != "" && text(s, "type") != "array" {
		r.refuse(at.Child("type"), text(s, "type"), "must be array together with x-kubernetes-list-type")
		return
	}
	if item == nil || listType != "set" && listType != "map" {
		return
	}
	below := at.Child("items")
	if given(item, "nullable") {
		r.forbid(below.Child("nullable"), fmt.Sprintf("the items of a %s cannot be null", listType))
	}
	switch itemType := text(item, "type"); {
	case listType == "map" && itemType != "object":
		r.refuse(below.Child("type"), itemType, "must be object in a map")
	case listType == "map":
		r.checkKeys(s, item, at)
	case itemType == "array" && !slices.Contains([]string{"", "atomic"}, text(item, "x-kubernetes-list-type")):
		r.refuse(below.Child("x-kubernetes-list-type"), text(item, "x-kubernetes-list-type"), "must be atomic in a set")
	case itemType == "object" && text(item, "x-kubernetes-map-type") != "atomic":
		r.refuse(below.Child("x-kubernetes-map-type"), text(item, "x-kubernetes-map-type"), "must be atomic in a set")
	}
}

// checkKeys checks the keys of a list that is a map: each must be there in every item.
func (r *schemaRules) checkKeys(s, item map[string]any, at *field.Path) {
	required, keys := texts(item, "required"), texts(s, "x-kubernetes-list-map-keys")
	for i, name := range keys {
		property, found := part(item, "properties")[name].(map[string]any)
		below := at.Child("items", "properties").Key(shortened(name))
		_, hasDefault := property["default"]
		switch {
		case !found:
			r.refuse(at.Child("x-kubernetes-list-map-keys"), name, "must be a property of the items")
			continue
		case slices.Contains(keys[:i], name):
			r.refuse(at.Child("x-kubernetes-list-map-keys"), name, "must not be listed twice")
		case slices.Contains([]string{"array", "object"}, text(property, "type")):
			r.refuse(below.Child("type"), text(property, "type"), "must not be array or object in a key of a map")
		case !hasDefault && !slices.Contains(required, name):
			r.demand(below.Child("default"), "a key of a map must have a default or be required")
		}
		if given(property, "nullable") {
			r.forbid(below.Child("nullable"), "a key of a map cannot be null")
		}
	}
}
