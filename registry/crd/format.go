package crd

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/internal/keywords"
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

// maxNamed is how many names a note has.
const maxNamed = 10

// noteUnused notes what has no effect: the part of the manifest that has it, of what sort it is, names
// of that sort, and how many there are besides these.
func (d *Definition) noteUnused(part, sort string, names []string, more int) {
	if len(names) == 0 {
		return
	}
	named := names[:min(len(names), maxNamed)]
	var quotes []string
	for _, name := range named {
		quotes = append(quotes, quoted(name))
	}
	if more += len(names) - len(named); more > 0 {
		quotes = append(quotes, strconv.Itoa(more)+" more")
	}
	d.Notes = append(d.Notes, fmt.Sprintf("%s has %s that have no effect: %s", part, sort, strings.Join(quotes, ", ")))
}

// noteFields notes the fields that no manifest has.
func (d *Definition) noteFields(m *manifest) {
	d.noteUnused("the manifest", "fields", m.unknown, 0)
}

// noteFormats notes the formats of a version that were removed.
func (d *Definition) noteFormats(gone []string, of *version) {
	d.noteUnused(of.title(), "formats", gone, 0)
}

// noteSets notes the sets of a version whose items are objects or lists. Their items have to differ, but merging and rules
// know sets of scalars alone.
func (d *Definition) noteSets(of *version) {
	for _, items := range []string{"array", "object"} {
		found := false
		eachSchema(d.validator.schema, func(s *spec.Schema) {
			kind, _ := s.Extensions.GetString("x-kubernetes-list-type")
			found = found || kind == "set" && s.Items != nil && s.Items.Schema != nil && s.Items.Schema.Type.Contains(items)
		})
		if found {
			d.Notes = append(d.Notes, fmt.Sprintf("%s has x-kubernetes-list-type: set for items of type %q, which server-side apply and rules in CEL do not support", of.title(), items))
		}
	}
}

// noteKeywords notes the keywords of a version that schemas do not have, such as those that are
// misspelled.
func (d *Definition) noteKeywords(of *version) error {
	var schema map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(of.Schema.OpenAPI, &schema); err != nil {
		return err
	}
	var names []string
	more := 0
	keywords.Unknown(schema, nil, func(_ map[string]any, _ string, at *field.Path) {
		if len(names) == maxNamed {
			more++
			return
		}
		names = append(names, place(at.String()))
	})
	d.noteUnused(of.title(), "keywords in its schema", names, more)
	return nil
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
