package catalog

import "encoding/json"

type (
	// swagger is the document of OpenAPI v2, which describes the kinds of all groups.
	swagger struct {
		Swagger     string                                     `json:"swagger"`
		Info        openAPIInfo                                `json:"info"`
		Produces    []string                                   `json:"produces"`
		Paths       map[string]pathItem[parameterV2, answerV2] `json:"paths"`
		Definitions map[string]schemaV2                        `json:"definitions"`
	}
	parameterV2 struct {
		Name     string `json:"name"`
		In       string `json:"in"`
		Required bool   `json:"required,omitempty"`
		Type     string `json:"type"`
	}
	answerV2 struct {
		Description string   `json:"description"`
		Schema      schemaV2 `json:"schema"`
	}
)

// openAPIV2 describes the kinds of all groups. Besides theirs it has the schemas of metadata,
// which clients look up by the names that these have in Kubernetes.
func openAPIV2(groups []group, info openAPIInfo) *swagger {
	doc := &swagger{
		Swagger: "2.0", Info: info, Produces: []string{jsonType},
		Paths: map[string]pathItem[parameterV2, answerV2]{}, Definitions: map[string]schemaV2{},
	}
	var all []component
	for _, g := range groups {
		for _, v := range g.versions {
			for _, k := range v.kinds {
				all = append(all, k.components()...)
				for _, s := range k.paths(v.path()) {
					doc.Paths[s.path] = operations(s, parameterInV2, answerInV2)
				}
			}
		}
	}
	to := conversion{map[string]bool{objectMeta: true, listMeta: true}}
	for _, c := range all {
		to.defined[c.name] = true
	}
	for _, c := range all {
		doc.Definitions[c.name] = to.object(c)
	}
	for name, fields := range metadataFields {
		text, _ := json.Marshal(fields) // cannot fail: it is texts, and lists and maps of them
		doc.Definitions[name] = to.schema(decode(text))
	}
	return doc
}

func parameterInV2(p parameter) parameterV2 {
	return parameterV2{Name: p.name, In: p.in, Required: p.in == "path", Type: p.kind}
}

func answerInV2(component string) answerV2 {
	return answerV2{Description: "OK", Schema: schemaV2{"$ref": refV2 + component}}
}
