package openapi

import (
	"cmp"
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/watchmill/watchmill/registry/internal/layout"
	"github.com/watchmill/watchmill/usercode"
)

// jsonSchema is the part of OpenAPI that Go types need.
type jsonSchema struct {
	Description string                 `json:"description,omitempty"`
	Type        string                 `json:"type,omitempty"`
	Format      string                 `json:"format,omitempty"`
	Properties  map[string]*jsonSchema `json:"properties,omitempty"`
	Additional  *jsonSchema            `json:"additionalProperties,omitempty"`
	Items       *jsonSchema            `json:"items,omitempty"`
	Required    []string               `json:"required,omitempty"`
	IntOrString bool                   `json:"x-kubernetes-int-or-string,omitempty"`
	Open        bool                   `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	ListType    string                 `json:"x-kubernetes-list-type,omitempty"`
	ListMapKeys []string               `json:"x-kubernetes-list-map-keys,omitempty"`
	MapType     string                 `json:"x-kubernetes-map-type,omitempty"`
	// Clients that read OpenAPI v2 make strategic merge patches by these.
	PatchStrategy string `json:"x-kubernetes-patch-strategy,omitempty"`
	PatchMergeKey string `json:"x-kubernetes-patch-merge-key,omitempty"`
}

const (
	apiVersionText = "APIVersion defines the versioned schema of this representation of an object."
	kindText       = "Kind is the type of object that this is, in camel case."
	metadataText   = "Standard object's metadata."
)

// Of returns the OpenAPI schema of a type from its tags, as JSON.
func Of(t reflect.Type) json.RawMessage {
	if layout.IsMap(t) {
		return json.RawMessage(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`)
	}
	s := typeSchema(t, nil)
	text, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`) // cannot happen: it is strings and lists of them
	}
	return text
}

// typeSchema returns the schema of a type. within are the named types around it: one within itself
// gets a schema that allows everything.
func typeSchema(t reflect.Type, within []reflect.Type) *jsonSchema {
	for t.Kind() == reflect.Pointer && t.Name() == "" { // before knownSchema: a pointer has the methods of its type
		t = t.Elem()
	}
	if s := knownSchema(t); s != nil {
		return s
	}
	if slices.Contains(within, t) {
		return openSchema(t)
	}
	if t.Name() != "" {
		within = append(within, t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return &jsonSchema{Type: "boolean"}
	case reflect.Int64, reflect.Int, reflect.Uint, reflect.Uint64, reflect.Uint32:
		return &jsonSchema{Type: "integer", Format: "int64"}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16:
		return &jsonSchema{Type: "integer", Format: "int32"}
	case reflect.Float32, reflect.Float64:
		return &jsonSchema{Type: "number"}
	case reflect.String:
		return &jsonSchema{Type: "string"}
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return &jsonSchema{Type: "string", Format: "byte"}
		}
		return &jsonSchema{Type: "array", Items: typeSchema(t.Elem(), within)}
	case reflect.Map:
		return &jsonSchema{Type: "object", Additional: typeSchema(t.Elem(), within)}
	case reflect.Pointer:
		return typeSchema(t.Elem(), within)
	case reflect.Struct:
		s := &jsonSchema{Type: "object", Properties: map[string]*jsonSchema{}, Description: textsOf(t)[""]}
		s.addFields(t, within)
		return s
	}
	return openSchema(t)
}

// openSchema returns a schema that allows every value of a type.
func openSchema(t reflect.Type) *jsonSchema {
	if t.Kind() == reflect.Struct || t.Kind() == reflect.Map {
		return &jsonSchema{Type: "object", Open: true}
	}
	return &jsonSchema{Open: true}
}

// knownSchema returns the schema of a type that encodes itself, nil for others.
func knownSchema(t reflect.Type) *jsonSchema {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[time.Time]():
		return &jsonSchema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[metav1.Duration]():
		return &jsonSchema{Type: "string"}
	case reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[resource.Quantity]():
		return &jsonSchema{IntOrString: true}
	case reflect.TypeFor[metav1.ObjectMeta]():
		return &jsonSchema{Type: "object", Description: metadataText}
	}
	itself := func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }
	switch {
	case t.Kind() == reflect.Interface || itself(reflect.TypeFor[json.Marshaler]()):
		return &jsonSchema{Open: true}
	case itself(reflect.TypeFor[encoding.TextMarshaler]()):
		return &jsonSchema{Type: "string"}
	}
	return nil
}

// addFields adds the fields of a struct, and before them those of structs that are inlined in it: a
// field of its own hides one of that name in them, as in JSON.
func (s *jsonSchema) addFields(t reflect.Type, within []reflect.Type) {
	if t == reflect.TypeFor[metav1.TypeMeta]() {
		s.Properties["apiVersion"] = &jsonSchema{Type: "string", Description: apiVersionText}
		s.Properties["kind"] = &jsonSchema{Type: "string", Description: kindText}
		return
	}
	for f := range t.Fields() {
		if inlined := indirect(f.Type); isInlined(f) && !slices.Contains(within, inlined) {
			s.addFields(inlined, append(within, inlined))
		}
	}
	texts := textsOf(t)
	for f := range t.Fields() {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" && !isInlined(f) {
			name = cmp.Or(name, f.Name)
			s.addField(f, name, rest, cmp.Or(f.Tag.Get("description"), texts[name]), within)
		}
	}
}

// isInlined reports whether the fields of a field are those of its struct.
func isInlined(f reflect.StructField) bool {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return f.Anonymous && name == "" && indirect(f.Type).Kind() == reflect.Struct
}

// addField adds one field by its tags, with a description, or that of its type if there is none.
func (s *jsonSchema) addField(f reflect.StructField, name, rest, description string, within []reflect.Type) {
	optional := strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero")
	p := typeSchema(f.Type, within)
	p.Description = cmp.Or(description, p.Description)
	p.mergeBy(f.Tag.Get("patchStrategy"), f.Tag.Get("patchMergeKey"))
	if strings.Contains(rest, "string") && (p.Type == "integer" || p.Type == "number" || p.Type == "boolean") {
		p.Type, p.Format = "string", ""
	}
	s.Required = slices.DeleteFunc(s.Required, func(hidden string) bool { return hidden == name })
	if !optional && name != "status" && name != "metadata" && f.Type.Kind() != reflect.Struct {
		s.Required = append(s.Required, name)
	}
	s.Properties[name] = p
}

// documented is what Kubernetes' types have: the descriptions of the fields by their names in JSON, and that of the
// type itself by "".
type documented interface{ SwaggerDoc() map[string]string }

// textsOf returns the descriptions that a struct has of itself and its fields. Those of a struct that is embedded in
// it are none, although they are promoted.
func textsOf(t reflect.Type) map[string]string {
	texts := swaggerDoc(t)
	for f := range t.Fields() {
		if f.Anonymous && len(texts) > 0 && maps.Equal(texts, swaggerDoc(indirect(f.Type))) {
			return nil
		}
	}
	return texts
}

// swaggerDoc returns what the method of a type returns, nil if it has none.
func swaggerDoc(t reflect.Type) (texts map[string]string) {
	of, has := reflect.Zero(t).Interface().(documented)
	if !has {
		return nil
	}
	_ = usercode.Call("SwaggerDoc", t.String(), func() { texts = of.SwaggerDoc() }) // which panics if it is that of a nil pointer
	return texts
}

// mergeBy sets how a list or a map merges, by the tags that Kubernetes' types have.
func (s *jsonSchema) mergeBy(strategy, key string) {
	switch {
	case s.Type == "array" && key != "":
		s.ListType, s.ListMapKeys = "map", []string{key}
	case s.Type == "array" && strings.HasPrefix(strategy, "merge") && s.Items.Type != "object" && s.Items.Type != "array":
		s.ListType = "set" // its items are scalars
	case s.Type == "object" && strategy == "replace":
		s.MapType = "atomic"
	}
	if s.Type != "array" || s.ListType != "" {
		s.PatchStrategy, s.PatchMergeKey = strategy, key
	}
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
