package apiextensions

import "github.com/watchmill/watchmill/internal/excerpt"

// maxShown is how many bytes of a name the paths of errors and warnings have.
const maxShown = 200

// shortened returns a name, or its beginning and an ellipsis if it is long: a name may be as large as
// a definition, and all paths below it have it.
func shortened(name string) string { return excerpt.Of(name, maxShown) }

// The functions below read definitions and their schemas, which are decoded JSON of any form.

// given reports whether an object has a field, with a value that says something.
func given(from map[string]any, field string) bool {
	switch v := from[field].(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return true
}

// text returns the text in a field, "" if there is none.
func text(from map[string]any, field string) string {
	value, _ := from[field].(string)
	return value
}

// part returns the object in a field, nil if there is none.
func part(from map[string]any, field string) map[string]any {
	value, _ := from[field].(map[string]any)
	return value
}

// texts returns the texts in the list that a field has.
func texts(from map[string]any, field string) (all []string) {
	list, _ := from[field].([]any)
	for _, item := range list {
		if one, isText := item.(string); isText {
			all = append(all, one)
		}
	}
	return all
}

// items returns the objects in the list that a field has, nil for an item that is not an object.
func items(from map[string]any, field string) (all []map[string]any) {
	list, _ := from[field].([]any)
	for _, item := range list {
		one, _ := item.(map[string]any)
		all = append(all, one)
	}
	return all
}
