package catalog

import "encoding/json"

type (
	openAPIV3 struct {
		OpenAPI    string                                     `json:"openapi"`
		Info       openAPIInfo                                `json:"info"`
		Paths      map[string]pathItem[parameterV3, answerV3] `json:"paths"`
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	parameterV3 struct {
		Name     string            `json:"name"`
		In       string            `json:"in"`
		Required bool              `json:"required,omitempty"`
		Schema   map[string]string `json:"schema"`
	}
	answerV3 struct {
		Description string                                  `json:"description"`
		Content     map[string]map[string]map[string]string `json:"content"`
	}
)

// refV3 begins the references to schemas of a document.
const refV3 = "#/components/schemas/"

// openAPIV3 describes the kinds of a group version.
func (v *groupVersion) openAPIV3(info openAPIInfo) *openAPIV3 {
	doc := &openAPIV3{OpenAPI: "3.0.0", Info: info, Paths: map[string]pathItem[parameterV3, answerV3]{}}
	doc.Components.Schemas = map[string]json.RawMessage{}
	for _, k := range v.kinds {
		for _, c := range k.components() {
			doc.Components.Schemas[c.name] = c.schema
		}
		for _, s := range k.paths(v.path()) {
			doc.Paths[s.path] = operations(s, parameterInV3, answerInV3)
		}
	}
	return doc
}

func parameterInV3(p parameter) parameterV3 {
	return parameterV3{Name: p.name, In: p.in, Required: p.in == "path", Schema: map[string]string{"type": p.kind}}
}

func answerInV3(component string) answerV3 {
	return answerV3{
		Description: "OK",
		Content:     map[string]map[string]map[string]string{jsonType: {"schema": {"$ref": refV3 + component}}},
	}
}
