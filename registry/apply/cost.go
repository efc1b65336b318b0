package apply

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// maxItems is how many items a list that merges may have, if it is the only one. The library keeps
// them in order by moving those that come after, in time that grows with the square of their number: a
// body of 3 MiB has room for so many that it would take minutes, in which nothing stops it. The fields of
// a map take a quarter of that.
const maxItems = 20_000

var errTooMany = errors.New("there are too many items in lists that merge, or fields in maps, to keep track of their owners: an object may have one list of nearly 20,000 items, each with four owners, or one map of 40,000 fields")

// affordable returns errTooMany if it would take too long to merge an object. The records of its
// owners may be as large as the object itself, so that an object that can be created can also be
// applied to.
func (a *applier) affordable(fields map[string]any) error {
	if members(fields) <= maxItems {
		return nil
	}
	own := object(fields).Object
	recorded, _, _ := unstructured.NestedFieldNoCopy(own, "metadata", "managedFields")
	unstructured.RemoveNestedField(own, "metadata", "managedFields")
	const budget = maxItems * maxItems
	tooMany := func(s *spec.Schema) bool { return remainingWork(s, own, budget) < 0 }
	if slices.ContainsFunc(a.schemas, tooMany) || remainingOfRecorded(recorded, budget) < 0 {
		return errTooMany
	}
	return nil
}

// members returns how many members all maps and lists in a value have.
func members(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		n = len(v)
		for _, member := range v {
			n += members(member)
		}
	case []any:
		n = len(v)
		for _, item := range v {
			n += members(item)
		}
	}
	return n
}

// remainingWork returns what is left of a budget after the work for a value with schema s, which is
// nil if it has none. It stops, and the result is negative, once the budget is used up.
func remainingWork(s *spec.Schema, value any, budget int) int {
	switch v := value.(type) {
	case map[string]any:
		budget -= len(v) * len(v) / 4
		for name, member := range v {
			if budget < 0 {
				break
			}
			budget = remainingWork(ofMember(s, name), member, budget)
		}
	case []any:
		if merges(s) {
			budget -= len(v) * len(v)
		}
		for i := 0; i < len(v) && budget >= 0; i++ {
			budget = remainingWork(ofItems(s), v[i], budget)
		}
	}
	return budget
}

// remainingOfRecorded returns what is left of a budget after managed fields are read. They are sorted by the
// texts of the names: so are fields, but not items, whose names are JSON.
func remainingOfRecorded(value any, budget int) int {
	switch v := value.(type) {
	case map[string]any:
		items := 0
		for name, member := range v {
			if !strings.HasPrefix(name, "f:") {
				items++
			}
			budget = remainingOfRecorded(member, budget)
		}
		budget -= items * items / 4
	case []any:
		for _, item := range v {
			budget = remainingOfRecorded(item, budget)
		}
	}
	return budget
}

// merges reports whether a list is not one field as a whole.
func merges(s *spec.Schema) bool {
	if s == nil {
		return false
	}
	if listType, found := s.Extensions.GetString("x-kubernetes-list-type"); found {
		return listType == "set" || listType == "map"
	}
	strategy, _ := s.Extensions.GetString("x-kubernetes-patch-strategy")
	return strategy == "merge" || strategy == "merge,retainKeys"
}

// ofMember returns the schema of a member of a map, nil if it has none.
func ofMember(s *spec.Schema, name string) *spec.Schema {
	if s == nil {
		return nil
	}
	if property, found := s.Properties[name]; found {
		return &property
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Schema
	}
	return nil
}

// ofItems returns the schema of the items of a list, nil if they have none.
func ofItems(s *spec.Schema) *spec.Schema {
	if s == nil || s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

// anyList is a schema by which all lists merge, for types that are not known.
func anyList() *spec.Schema {
	s := &spec.Schema{}
	s.AddExtension("x-kubernetes-list-type", "set")
	s.Items = &spec.SchemaOrArray{Schema: s}
	s.AdditionalProperties = &spec.SchemaOrBool{Schema: s}
	return s
}
