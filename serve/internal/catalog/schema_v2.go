package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// schemaV2 is a schema of OpenAPI v2 by its words. The values are those that JSON is decoded to,
// schemas, and maps of schemas.
type schemaV2 map[string]any

// word is a word of schemas of OpenAPI v2: its number in protobuf, and what its value is.
type word struct {
	number protowire.Number
	value  valueKind
}

type valueKind int

const (
	_ valueKind = iota
	aText
	aNumber
	anInteger
	aBool
	aType
	texts
	anyValue
	anyValues
	aSchema
	aBoolOrSchema
	schemas
)

// words are the words that are kept. As in Kubernetes, allOf is not, though v2 has it.
var words = map[string]word{
	"$ref": {1, aText}, "format": {2, aText}, "title": {3, aText}, "description": {4, aText}, "default": {5, anyValue},
	"multipleOf": {6, aNumber}, "maximum": {7, aNumber}, "exclusiveMaximum": {8, aBool}, "minimum": {9, aNumber}, "exclusiveMinimum": {10, aBool},
	"maxLength": {11, anInteger}, "minLength": {12, anInteger}, "pattern": {13, aText}, "maxItems": {14, anInteger}, "minItems": {15, anInteger},
	"uniqueItems": {16, aBool}, "maxProperties": {17, anInteger}, "minProperties": {18, anInteger}, "required": {19, texts}, "enum": {20, anyValues},
	"additionalProperties": {21, aBoolOrSchema}, "type": {22, aType}, "items": {23, aSchema}, "properties": {25, schemas}, "readOnly": {27, aBool},
	"example": {30, anyValue},
}

// types are the types that a value may have.
var types = []string{"string", "number", "integer", "boolean", "array", "object"}

// refV2 begins the references to schemas of the document.
const refV2 = "#/definitions/"

// conversion makes schemas of OpenAPI v2 from those of v3. It leaves out what v2 cannot say, and
// what clients cannot read: kubectl reads no definition at all if there is one that it cannot.
type conversion struct {
	// defined are the names that references may lead to.
	defined map[string]bool
}

// object returns the schema of a kind's objects. One that allows fields that it does not describe
// says nothing else, since kubectl refuses all fields but those that are described.
func (to conversion) object(c component) schemaV2 {
	s := to.schema(decode(c.schema))
	if properties, closed := s["properties"].(map[string]schemaV2); closed {
		properties["metadata"] = metadataV2(c.metadata)
	} else {
		s = schemaV2{"type": "object"}
	}
	s["x-kubernetes-group-version-kind"] = []discoveryKind{c.kind}
	return s
}

// metadataV2 returns the schema of metadata that the schema of that name describes.
func metadataV2(name string) schemaV2 {
	return schemaV2{"$ref": refV2 + name, "description": metadataFields[name]["description"]}
}

// schema converts a schema. A value that is not a schema allows everything.
func (to conversion) schema(given any) schemaV2 {
	from, _ := given.(map[string]any)
	s := schemaV2{}
	if ref, refers := from["$ref"].(string); refers {
		if text, described := from["description"].(string); described {
			s["description"] = text
		}
		if name, found := strings.CutPrefix(ref, refV3); found && to.defined[name] {
			s["$ref"] = refV2 + name
		}
		return s
	}
	for name, value := range from {
		if value := to.value(name, value); value != nil {
			s[name] = value
		}
	}
	s.simplify(from)
	if from["x-kubernetes-embedded-resource"] == true && from["x-kubernetes-preserve-unknown-fields"] != true {
		s.embed()
	}
	return s
}

// simplify leaves out what kubectl would hold against values that a schema allows: a type
// excludes null, properties exclude others, a list must have items, and a field that is required
// must not be null.
func (s schemaV2) simplify(from map[string]any) {
	nullable, open := from["nullable"] == true, from["x-kubernetes-preserve-unknown-fields"] == true
	if nullable || open {
		delete(s, "items")
		delete(s, "properties")
	}
	if nullable || open && s["type"] == "object" || s["type"] == "array" && s["items"] == nil {
		delete(s, "type")
	}
	if required, ok := s["required"].([]any); ok {
		properties, _ := from["properties"].(map[string]any)
		required = slices.DeleteFunc(required, func(name any) bool { return isNullable(properties[name.(string)]) })
		s["required"] = required
		if len(required) == 0 || isNullable(from["additionalProperties"]) {
			delete(s, "required")
		}
	}
}

func isNullable(schema any) bool {
	from, _ := schema.(map[string]any)
	return from["nullable"] == true
}

// embed describes the fields that a resource inside of an object has.
func (s schemaV2) embed() {
	properties, _ := s["properties"].(map[string]schemaV2)
	if properties == nil {
		properties = map[string]schemaV2{}
		s["properties"] = properties
	}
	required, _ := s["required"].([]any)
	for _, name := range []string{"kind", "apiVersion"} {
		properties[name] = commonFields[name]
		if !slices.Contains(required, any(name)) {
			required = append(required, name)
		}
	}
	properties["metadata"] = metadataV2(objectMeta)
	s["required"] = required
}

// value converts the value of a word; nil means that the word is left out.
func (to conversion) value(name string, value any) any {
	if strings.HasPrefix(name, "x-") {
		return value
	}
	switch words[name].value {
	case aText:
		return only[string](value)
	case aBool:
		return only[bool](value)
	case aNumber, anInteger:
		if n, ok := value.(json.Number); ok && fits(n, words[name].value) {
			return n
		}
	case aType:
		if name, ok := value.(string); ok && slices.Contains(types, name) {
			return name
		}
	case texts:
		if list, ok := value.([]any); ok {
			return slices.DeleteFunc(list, func(v any) bool { return only[string](v) == nil })
		}
	case anyValue:
		return value
	case anyValues:
		return only[[]any](value)
	case aBoolOrSchema:
		if allowed, ok := value.(bool); ok {
			return allowed
		}
		return to.value("items", value)
	case aSchema:
		if _, ok := value.(map[string]any); ok {
			return to.schema(value)
		}
	case schemas:
		if fields, ok := value.(map[string]any); ok {
			return to.fields(fields)
		}
	}
	return nil
}

// fits reports whether protobuf can have a number.
func fits(n json.Number, as valueKind) bool {
	_, err := n.Float64()
	if as == anInteger {
		_, err = n.Int64()
	}
	return err == nil
}

// only returns a value if it is a T, and nil otherwise.
func only[T any](value any) any {
	if _, ok := value.(T); ok {
		return value
	}
	return nil
}

func (to conversion) fields(given map[string]any) map[string]schemaV2 {
	all := map[string]schemaV2{}
	for name, field := range given {
		all[name] = to.schema(field)
	}
	return all
}

// decode returns the value that a text has as JSON, nil if it is not JSON.
func decode(text json.RawMessage) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // which keeps large integers
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}
