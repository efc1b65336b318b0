package crd

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// The types of columns, of lists and of schemas.
var (
	columnTypes = []string{"integer", "number", "string", "boolean", "date"}
	listTypes   = []string{"", "atomic", "set", "map"}
	schemaTypes = []string{"", "array", "boolean", "integer", "number", "object", "string"}
)

// checkNames refuses names that no kind can have.
func (m *manifest) checkNames() error {
	type rule struct {
		field, name string
		problems    []string
	}
	names := &m.Spec.Names
	rules := []rule{
		{"spec.group", m.Spec.Group, utilvalidation.IsDNS1123Subdomain(m.Spec.Group)},
		{"spec.names.plural", names.Plural, utilvalidation.IsDNS1035Label(names.Plural)},
		{"spec.names.kind", names.Kind, utilvalidation.IsDNS1035Label(strings.ToLower(names.Kind))},
	}
	if names.Singular != "" {
		rules = append(rules, rule{"spec.names.singular", names.Singular, utilvalidation.IsDNS1035Label(names.Singular)})
	}
	if names.ListKind != "" {
		problems := utilvalidation.IsDNS1035Label(strings.ToLower(names.ListKind))
		if names.ListKind == names.Kind {
			problems = append(problems, "the objects have it, too")
		}
		rules = append(rules, rule{"spec.names.listKind", names.ListKind, problems})
	}
	for i, name := range names.ShortNames {
		rules = append(rules, rule{fmt.Sprintf("spec.names.shortNames[%d]", i), name, utilvalidation.IsDNS1035Label(name)})
	}
	for i, v := range m.Spec.Versions {
		rules = append(rules, rule{fmt.Sprintf("spec.versions[%d].name", i), v.Name, utilvalidation.IsDNS1035Label(v.Name)})
	}
	for _, r := range rules {
		if len(r.problems) > 0 {
			return m.wrong(r.field, fmt.Sprintf("is %s, which cannot be used: %s", quoted(r.name), strings.Join(r.problems, "; ")))
		}
	}
	return nil
}

// maxVersions is how many versions a kind may have. Each is served by an engine of its own, and has to know the types of
// all others.
const maxVersions = 100

// checkVersions refuses too many versions, two of one name, and two that are stored.
func (m *manifest) checkVersions() error {
	if n := len(m.Spec.Versions); n > maxVersions {
		return m.wrong("spec.versions", fmt.Sprintf("has %d versions; give at most %d", n, maxVersions))
	}
	stored := ""
	named := map[string]bool{}
	for i, v := range m.Spec.Versions {
		field := fmt.Sprintf("spec.versions[%d]", i)
		if named[v.Name] {
			return m.wrong(field+".name", fmt.Sprintf("is %s, which another version has, too; give each version its own", quoted(v.Name)))
		}
		named[v.Name] = true
		if v.Storage && stored != "" {
			return m.wrong(field+".storage", fmt.Sprintf("is true, as for %s; give true for one version only", stored))
		}
		if v.Storage {
			stored = v.Name
		}
	}
	return nil
}

// checkColumns refuses a column without a name, or of a type that there is not.
func (m *manifest) checkColumns(v *version) error {
	for i, c := range v.Columns {
		field := fmt.Sprintf("spec.versions.additionalPrinterColumns[%d]", i)
		if c.Name == "" {
			return m.wrong(field+".name", "is missing; give the heading of the column")
		}
		if !slices.Contains(columnTypes, c.Type) {
			return m.wrong(field+".type", fmt.Sprintf("is %s; give one of %s", quoted(c.Type), strings.Join(columnTypes, ", ")))
		}
	}
	return nil
}

// placeOf returns the place of a schema as an error shows it. The path is nil for that of the object.
func placeOf(at *field.Path) string {
	if at == nil {
		return "the object"
	}
	return place(at.String())
}

// checkSelf refuses what no property can have. The path is nil for the object.
func (s *schema) checkSelf(at *field.Path) error {
	wrong := func(problem string) error { return fmt.Errorf("%s %s", placeOf(at), problem) }
	if s.Ref != "" {
		return wrong("has a $ref, which manifests cannot have: write the schema out")
	}
	if problem := s.wrongType(at == nil); problem != "" {
		return wrong(problem)
	}
	if !slices.Contains(listTypes, s.ListType) {
		return wrong(fmt.Sprintf("has the x-kubernetes-list-type %s: give one of %s", quoted(s.ListType), strings.Join(listTypes[1:], ", ")))
	}
	if (s.ListType == "map") != (len(s.ListKeys) > 0) {
		return wrong("needs both x-kubernetes-list-type map and x-kubernetes-list-map-keys, or neither")
	}
	if _, err := regexp.Compile(s.Pattern); err != nil {
		return wrong("has a pattern that does not parse: " + shortened(err.Error()))
	}
	return nil
}

// wrongType returns what is wrong with the type of a schema, "" if nothing is. Like Kubernetes it
// demands one wherever a field is declared, without which nothing in the field is checked.
func (s *schema) wrongType(root bool) string {
	switch {
	case !slices.Contains(schemaTypes, s.Type):
		return fmt.Sprintf("has the type %s: give one of %s", quoted(s.Type), strings.Join(schemaTypes[1:], ", "))
	case root && s.Type != "" && s.Type != "object":
		return fmt.Sprintf("has the type %s: give object", quoted(s.Type))
	case s.Embedded && s.Type != "object":
		return "is an embedded resource: give the type object"
	case s.Type == "" && !s.Open && !s.IntOrText:
		return "has no type: give one of " + strings.Join(schemaTypes[1:], ", ") + ", or x-kubernetes-preserve-unknown-fields: true for any value"
	}
	return ""
}

// checkDefaults refuses a default that its own schema, which is also of, does not allow as it is: Kubernetes
// sets no defaults in it first, and looks at none below additionalProperties.
func (s *schema) checkDefaults(of *spec.Schema, at *field.Path) error {
	if s == nil || of == nil {
		return nil
	}
	if s.Default != nil {
		if wrong := (&validator{schema: of}).validate(s.Default); len(wrong) > 0 {
			return fmt.Errorf("%s has a default that its schema does not allow: %s", placeOf(at), shortened(strings.TrimPrefix(wrong[0].Error(), "<nil>: ")))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		property := of.Properties[name]
		if err := s.Properties[name].checkDefaults(&property, at.Child(shortened(name))); err != nil {
			return err
		}
	}
	if of.Items != nil {
		return s.Items.checkDefaults(of.Items.Schema, at.Key("*"))
	}
	return nil
}
