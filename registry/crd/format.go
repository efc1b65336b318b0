package crd

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// dropFormats removes the formats that values of their type are not checked by, and returns them in order,
// each once. Kubernetes does so, too: with a format that it does not know, the validation library takes any
// text and any list for a value of whatever type.
func dropFormats(s *spec.Schema) []string {
	gone := map[string]bool{}
	eachSchema(s, func(s *spec.Schema) {
		if s.Format != "" && !knowsFormat(s) {
			gone[s.Format], s.Format = true, ""
		}
	})
	return slices.Sorted(maps.Keys(gone))
}

// knowsFormat reports whether the validation library checks values of the schema's type by its format.
func knowsFormat(s *spec.Schema) bool {
	of := ""
	if len(s.Type) == 1 {
		of = s.Type[0]
	}
	switch of {
	case "", "string":
		return strfmt.Default.ContainsName(s.Format)
	case "integer":
		return s.Format == "int32" || s.Format == "int64"
	case "number":
		return s.Format == "float" || s.Format == "double"
	}
	return false
}

// maxFormats is how many formats a note names.
const maxFormats = 10

// noteFormats notes the formats of a version that were removed.
func (d *Definition) noteFormats(gone []string, of *version) {
	if len(gone) == 0 {
		return
	}
	var named []string
	for _, format := range gone[:min(len(gone), maxFormats)] {
		named = append(named, quoted(format))
	}
	if more := len(gone) - len(named); more > 0 {
		named = append(named, strconv.Itoa(more)+" more")
	}
	d.Notes = append(d.Notes, fmt.Sprintf("version %s has formats that have no effect: %s", of.Name, strings.Join(named, ", ")))
}

// eachSchema calls do for a schema and for each one in it.
func eachSchema(s *spec.Schema, do func(*spec.Schema)) {
	if s == nil {
		return
	}
	do(s)
	for name, property := range s.Properties {
		eachSchema(&property, do)
		s.Properties[name] = property
	}
	if s.AdditionalProperties != nil {
		eachSchema(s.AdditionalProperties.Schema, do)
	}
	if s.Items != nil {
		eachSchema(s.Items.Schema, do)
	}
	for _, junctor := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range junctor {
			eachSchema(&junctor[i], do)
		}
	}
	eachSchema(s.Not, do)
}
