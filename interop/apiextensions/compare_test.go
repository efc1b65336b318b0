package apiextensions

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// summary is an answer without what may differ.
type summary struct {
	code int
	// text has the rest, a line for each value.
	text string
}

// anAge is how tables show the age of an object that is not old.
var anAge = regexp.MustCompile(`^\d+(s|m(\d+s)?)$`)

// comparedHeaders are the headers that have to be the same.
var comparedHeaders = []string{"Content-Type", "Warning", "Retry-After"}

// compare returns what has to be the same in an answer.
func compare(a *answer) summary {
	var out strings.Builder
	for _, name := range comparedHeaders {
		if name == "Warning" && a.code == http.StatusNotFound {
			continue // Kubernetes may have found the object in its cache first
		}
		for _, value := range slices.Sorted(slices.Values(a.headers.Values(name))) {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	for _, value := range a.values {
		if isBookmark(value) {
			continue
		}
		text, err := json.MarshalIndent(general(value, ""), "", "  ")
		if err != nil {
			panic(err) // of a value that JSON has been decoded to
		}
		out.Write(text)
		out.WriteByte('\n')
	}
	return summary{a.code, out.String()}
}

// isBookmark reports whether a value is a bookmark other than that at the end of the initial
// state: a server may send one at any time.
func isBookmark(value any) bool {
	event, _ := value.(map[string]any)
	object, _ := event["object"].(map[string]any)
	meta, _ := object["metadata"].(map[string]any)
	return event["type"] == "BOOKMARK" && meta["annotations"] == nil
}

// general returns a value of JSON without what may differ in it: the value of the field of that
// name, or an element of its list.
func general(value any, name string) any {
	switch v := value.(type) {
	case map[string]any:
		return generalObject(v, name)
	case []any:
		list := make([]any, 0, len(v))
		for _, element := range v {
			if g := general(element, name+"[]"); !isCauseOfNoField(g) {
				list = append(list, g)
			}
		}
		if slices.Contains([]string{"managedFields", "causes", "resources", "verbs"}, name) { // which have no order
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return list
	case string:
		switch name {
		case "cells[]":
			return anAge.ReplaceAllString(v, "some age")
		case "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "continue":
			if v != "" {
				return "some " + name
			}
		}
	}
	return value
}

// generalObject is general of an object.
func generalObject(fields map[string]any, name string) map[string]any {
	fields = maps.Clone(fields)
	if _, isStatus := fields["status"].(string); isStatus && fields["kind"] == "Status" {
		delete(fields, "message")
		if fields["status"] == "Success" {
			delete(fields, "code")
			delete(fields, "metadata")
		}
		if details, _ := fields["details"].(map[string]any); len(details) == 0 {
			delete(fields, "details")
		}
	}
	switch name {
	case "items[]":
		if fields["kind"] == "PartialObjectMetadata" { // which ours leave out
			delete(fields, "apiVersion")
			delete(fields, "kind")
		}
	case "causes[]":
		delete(fields, "message")
	case "columnDefinitions[]":
		delete(fields, "description")
	case "details":
		delete(fields, "kind") // the resource in some errors, and the kind in others
	}
	if fields["continue"] == "" {
		delete(fields, "continue")
	}
	for member, value := range fields {
		fields[member] = general(value, member)
	}
	return fields
}

// drop removes the fields of a name from a value of JSON.
func drop(value any, name string) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, name)
		for _, member := range v {
			drop(member, name)
		}
	case []any:
		for _, element := range v {
			drop(element, name)
		}
	}
}

// dropLostTimes removes the times of managers from both answers if one is missing in that of Kubernetes,
// which loses them in some writes of subresources.
func dropLostTimes(original, ours *answer) {
	if !managers(original.values, func(manager map[string]any) bool { return manager["time"] == nil }) {
		return
	}
	for _, a := range []*answer{original, ours} {
		managers(a.values, func(manager map[string]any) bool {
			delete(manager, "time")
			return false
		})
	}
}

// managers calls a function with each manager of fields in a value of JSON, until it returns true.
func managers(value any, found func(map[string]any) bool) bool {
	switch v := value.(type) {
	case map[string]any:
		if v["manager"] != nil && v["operation"] != nil && found(v) {
			return true
		}
		for _, member := range v {
			if managers(member, found) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(element any) bool { return managers(element, found) })
	}
	return false
}

// isCauseOfNoField reports whether a value is a cause of which Kubernetes does not say of which field.
func isCauseOfNoField(value any) bool {
	cause, _ := value.(map[string]any)
	return cause["reason"] == "FieldValueInvalid" && cause["field"] == "<nil>"
}
