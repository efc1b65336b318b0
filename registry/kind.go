package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/watchmill/watchmill/engine"
)

// Kind names a kind of object. Version and Kind are required; the other names have defaults
// that follow from Kind.
type Kind struct {
	// Group is a DNS name such as "example.com", Version such as "v1" or
	// "v1beta2", Kind in camel case such as "Widget". An empty Group is the core group, which
	// Kubernetes keeps for its own kinds, such as ConfigMap: their apiVersion is the version
	// alone, and their paths begin with /api instead of /apis.
	Group, Version, Kind string
	// Plural is the name in paths, lower case: by default that of Kind with an
	// "s", or as English has it after y, s, x, z, ch and sh. Singular is Kind in
	// lower case by default.
	Plural, Singular string
	// ListKind is the kind of lists of the objects; empty means Kind and "List".
	ListKind string
	// ShortNames are short forms of Plural for users of kubectl. Categories are groups of
	// kinds, such as "all".
	ShortNames, Categories []string
	// ClusterScoped objects have no namespace.
	ClusterScoped bool
	// Status gives the kind a status subresource: a write of that changes status and
	// metadata alone, or only status with [Strategy].StatusOnly, and a write of the object
	// leaves status alone. The kind's Go type must have a field of that name in JSON, its own or
	// that of a struct that it embeds.
	Status bool
	// Parts are further subresources by which clients change the objects. What a write of one changes is
	// for [Strategy].Prepare, which finds out by [SubresourceOf] that it is one. Like a write of the object, it
	// leaves a status alone that is a subresource.
	Parts []Part
}

// Part is a subresource by which clients change a part of an object that others do not change, as those do
// that finalize a namespace of Kubernetes.
type Part struct {
	// Name is that in paths, such as "finalize".
	Name string
	// Verbs are one or more of get, patch and update.
	Verbs []string
}

// GroupVersionKind returns the apiVersion and kind of the kind's objects.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// ListGroupVersionKind returns the apiVersion and kind of lists of the kind's objects.
func (k Kind) ListGroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: cmp.Or(k.ListKind, k.Kind+"List")}
}

// GroupResource returns the name that the kind has in errors.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Plural}
}

// APIPath returns the path at which servers have the kind's group and version, such as
// /apis/example.com/v1, or /api/v1 for the core group.
func (k Kind) APIPath() string {
	if k.Group == "" {
		return "/api/" + k.Version
	}
	return "/apis/" + k.Group + "/" + k.Version
}

// Key returns the key of the object with that namespace and name. The namespace of a
// cluster-scoped kind is ignored.
func (k Kind) Key(namespace, name string) string {
	if k.ClusterScoped {
		return name
	}
	return namespace + "/" + name
}

// withDefaults returns k with defaults for the names that were left out, and lists of its own.
func (k Kind) withDefaults() Kind {
	k.ShortNames, k.Categories, k.Parts = slices.Clone(k.ShortNames), slices.Clone(k.Categories), slices.Clone(k.Parts)
	for i := range k.Parts {
		k.Parts[i].Verbs = slices.Clone(k.Parts[i].Verbs)
	}
	lower := strings.ToLower(k.Kind)
	k.Singular, k.Plural = cmp.Or(k.Singular, lower), cmp.Or(k.Plural, plural(lower))
	return k
}

// plural returns the plural of an English noun, for the regular ones.
func plural(noun string) string {
	for _, ending := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(noun, ending) {
			return noun + "es"
		}
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return stem + "ies"
	}
	return noun + "s"
}

// validate returns an [*engine.ConfigError] for the first name that is wrong.
func (k Kind) validate() error {
	type rule struct {
		field, name string
		problems    []string
	}
	rules := []rule{
		{"Version", k.Version, validation.IsDNS1035Label(k.Version)},
		{"Kind", k.Kind, validation.IsDNS1035Label(strings.ToLower(k.Kind))},
		{"Plural", k.Plural, validation.IsDNS1035Label(k.Plural)},
		{"Singular", k.Singular, validation.IsDNS1035Label(k.Singular)},
		{"ListKind", k.ListKind, validation.IsDNS1035Label(strings.ToLower(k.ListGroupVersionKind().Kind))},
	}
	if k.Group != "" {
		rules = append(rules, rule{"Group", k.Group, validation.IsDNS1123Subdomain(k.Group)})
	}
	for _, name := range k.ShortNames {
		rules = append(rules, rule{"ShortNames", name, validation.IsDNS1035Label(name)})
	}
	for _, r := range rules {
		switch {
		case r.name == "" && r.field == "Version":
			return &engine.ConfigError{Field: "Kind.Version", Problem: "is empty; give one such as v1"}
		case r.name == "" && r.field == "Kind":
			return &engine.ConfigError{Field: "Kind.Kind", Problem: "is empty; give the name of the kind, such as Widget"}
		case len(r.problems) > 0:
			return &engine.ConfigError{Field: "Kind." + r.field, Problem: fmt.Sprintf("has the name %q, which cannot be used: %s", r.name, strings.Join(r.problems, "; "))}
		}
	}
	if k.ListKind == k.Kind {
		return &engine.ConfigError{Field: "Kind.ListKind", Problem: fmt.Sprintf("is %q, as Kind is; give another name, or none", k.ListKind)}
	}
	return k.validateParts()
}

// validateParts returns an [*engine.ConfigError] for the first part that is wrong.
func (k Kind) validateParts() error {
	seen := map[string]bool{statusSubresource: true, scaleSubresource: true}
	for i, p := range k.Parts {
		wrong := func(field, problem string) error {
			return &engine.ConfigError{Field: fmt.Sprintf("Kind.Parts[%d].%s", i, field), Problem: problem}
		}
		switch {
		case seen[p.Name] || len(validation.IsDNS1035Label(p.Name)) > 0:
			return wrong("Name", fmt.Sprintf("is %q; give a name such as finalize that no other subresource has, status and scale included", p.Name))
		case len(p.Verbs) == 0 || slices.ContainsFunc(p.Verbs, func(verb string) bool { return !slices.Contains(partVerbs, verb) }):
			return wrong("Verbs", fmt.Sprintf("are %q; give one or more of %s", p.Verbs, strings.Join(partVerbs, ", ")))
		}
		seen[p.Name] = true
	}
	return nil
}

// partVerbs are those that the subresources of objects may have.
var partVerbs = []string{"get", "patch", "update"}

// part returns the part of that name, nil if there is none.
func (k *Kind) part(name string) *Part {
	if i := slices.IndexFunc(k.Parts, func(p Part) bool { return p.Name == name }); i >= 0 {
		return &k.Parts[i]
	}
	return nil
}
