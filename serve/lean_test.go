package serve_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	leanJSON    = "application/json;drop=metadata.managedFields"
	leanPartial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io;drop=metadata.managedFields"
	leanTable   = "application/json;as=Table;v=v1;g=meta.k8s.io;drop=metadata.managedFields"
)

// Managed fields are left out for clients that say so, in every form and answer, and for
// those alone.
func TestLean_ManagedFieldsAreLeftOut(t *testing.T) {
	s := newServer(t, withApply)
	const managed = "managedFields"
	require.Contains(t, s.apply("?fieldManager=one", "{size: 1}").body, managed)
	whole := s.get(inDefault + "/a")
	require.Contains(t, whole.body, managed)
	for _, accept := range []string{
		leanJSON, leanPartial, leanTable, "application/json; drop=metadata.labels+metadata.managedFields",
		"application/vnd.kubernetes.protobuf;drop=metadata.managedFields," + leanJSON,
	} {
		for _, path := range []string{inDefault + "/a", inDefault} {
			a := s.get(path, "Accept", accept)
			require.Equal(t, 200, a.code)
			require.Contains(t, a.body, whole.str("metadata.uid"), "%s for %s", path, accept)
			require.NotContains(t, a.body, managed, "%s for %s", path, accept)
		}
	}
	for _, accept := range []string{"application/json;drop=x", "application/json;drop=metadata.labels", "application/json;drop=managedFields", leanJSON + ";q=0.5,application/json"} {
		require.Contains(t, s.get(inDefault+"/a", "Accept", accept).body, managed, accept)
	}
	require.Contains(t, s.get(inDefault+"?includeObject=Object", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").body, managed)
	require.NotContains(t, s.get(inDefault+"?includeObject=Object", "Accept", leanTable).body, managed)

	patched := s.do("PATCH", inDefault+"/a", `{"metadata":{"labels":{"x":"y"}}}`, "Content-Type", mergePatch, "Accept", leanJSON)
	require.Equal(t, "y", patched.str("metadata.labels.x"))
	require.NotContains(t, patched.body, managed)
	require.Contains(t, s.get(inDefault+"/a").body, managed, "the object has them still")
}

// Watches of both kinds go on beside each other, each with encodings of its own.
func TestLean_WatchesHaveTheirOwnEncoding(t *testing.T) {
	s := newServer(t, withApply)
	for _, form := range []string{"application/json", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"} {
		lean, full := s.watch(inDefault+"?watch=1", "Accept", form+";drop=metadata.managedFields"), s.watch(inDefault+"?watch=1", "Accept", form)
		for _, size := range []string{"{size: 1}", "{size: 2}"} {
			require.Less(t, s.apply("?fieldManager=one", size).code, 300)
			one, _ := lean.next()
			other, _ := full.next()
			require.Equal(t, other.String(), one.String())
			require.Equal(t, other.str("spec"), one.str("spec"))
			require.Equal(t, "<nil>", one.str("metadata.managedFields"))
			require.Equal(t, "one", other.str("metadata.managedFields.0.manager"))
		}
		require.Equal(t, 200, s.do("DELETE", inDefault+"/a", "").code)
	}
}
