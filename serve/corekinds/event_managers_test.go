package corekinds_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve/corekinds"
)

// managers returns the fields that managers own, by their names with the group by which they have written.
func managers(object map[string]any) map[string]any {
	all := map[string]any{}
	entries, _ := at(object, "metadata.managedFields").([]any)
	for _, entry := range entries {
		e := entry.(map[string]any)
		all[e["manager"].(string)+" "+e["apiVersion"].(string)] = e["fieldsV1"]
	}
	return all
}

// What a manager owns by one group it keeps when another one writes by the other group.
func TestEvents_ManagersOfEitherGroupKeepWhatTheyOwn(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	c.record(t)
	const mine = `{"apiVersion":"v1","kind":"Event","message":"mine","source":{"component":"me"}}`
	c.must(200, "PATCH", coreEvents+"/old?fieldManager=me&force=true", mine, "Content-Type", apply)
	before := managers(c.must(200, "GET", coreEvents+"/old", ""))
	require.Equal(t, map[string]any{"f:message": map[string]any{}, "f:source": map[string]any{"f:component": map[string]any{}}}, before["me v1"])
	require.Equal(t, map[string]any{}, before["unknown v1"].(map[string]any)["f:involvedObject"], "a reference has one owner")

	now := c.must(200, "PATCH", newEvents+"/old?fieldManager=you", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", merge)
	after := managers(now)
	require.Contains(t, after, "you events.k8s.io/v1")
	delete(after, "you events.k8s.io/v1")
	require.Equal(t, before, after)
	told := c.must(409, "PATCH", newEvents+"/old?fieldManager=you", `{"apiVersion":"events.k8s.io/v1","kind":"Event","note":"yours"}`, "Content-Type", apply)
	require.Contains(t, told["message"], `conflict with "me": .message`)

	// An apply removes what its manager has applied by the other group.
	c.must(200, "PATCH", coreEvents+"/old?fieldManager=series", `{"apiVersion":"v1","kind":"Event","series":{"count":2,"lastObservedTime":"2026-01-02T03:04:05.000000Z"}}`, "Content-Type", apply)
	require.NotContains(t, c.must(200, "PATCH", newEvents+"/old?fieldManager=series", `{"apiVersion":"events.k8s.io/v1","kind":"Event"}`, "Content-Type", apply), "series")
}

// A write by the group that did not write an event last is none if it changes nothing.
func TestEvents_WhatChangesNothingIsNotWritten(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	c.record(t)
	for _, path := range []string{newEvents + "/old", coreEvents + "/new", newEvents + "/new"} {
		before := at(c.must(200, "GET", path, ""), "metadata")
		for _, media := range []string{merge, strategic} {
			require.Equal(t, before, at(c.must(200, "PATCH", path, `{}`, "Content-Type", media), "metadata"), path)
		}
	}
}
