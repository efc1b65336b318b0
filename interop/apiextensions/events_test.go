package apiextensions

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a watch is told of an object depends on whether its selectors match the object now, and matched it before.
// The watches begin at a revision after which the objects have gone through every kind of change.
func TestWatch_SendsTheEventsOfKubernetes(t *testing.T) {
	t.Parallel()
	s := &script{T: t, pair: newPair(t)}
	s.without = "columnDefinitions" // Kubernetes repeats them in some tables
	s.same(post(widget("old", `,"labels":{"a":"b"}`, `{"size":1,"color":"red"}`)))
	s.same(get(widgets + "?limit=1"))
	for _, of := range []*server{s.original, s.ours} {
		of.said["before"] = of.said["rv"]
	}
	change := func(name, body string) request { return patch(mergePatch, name, body) }
	for _, r := range []request{
		post(widget("new", `,"labels":{"a":"b"}`, `{"size":1,"color":"red"}`)),
		change("new", `{"metadata":{"labels":{"a":"c"}}}`), change("new", `{"metadata":{"labels":{"a":"c"}}}`), change("new", `{"metadata":{"labels":{"a":"b"}}}`),
		change("new", `{"spec":{"color":"green"}}`), change("new/status", `{"status":{"size":4}}`), change("new/scale", `{"spec":{"replicas":9}}`),
		change("new", `{"metadata":{"finalizers":["a.b/c"]}}`), remove("new", ""), change("new", `{"metadata":{"labels":null}}`), change("new", `{"metadata":{"finalizers":null}}`),
		post(widget("new", ``, `{"size":1,"color":"red"}`)), remove("new", ""), remove("?labelSelector=a%3Db", ""),
		post(widget("last", ``, `{"size":1}`)),
	} {
		s.same(r)
	}
	s.same(get(widgets + "?resourceVersion=$rv:last$&resourceVersionMatch=NotOlderThan")) // now the caches have all of it
	const table, partial = "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	require.Empty(t, strings.Join(s.wrong, "\n"))
	for _, selector := range []string{
		"", "labelSelector=a", "labelSelector=a%3Db", "labelSelector=a!%3Db", "labelSelector=!a", "fieldSelector=spec.color%3Dred", "fieldSelector=spec.color!%3Dred",
		"fieldSelector=metadata.name%3Dnew", "fieldSelector=metadata.name%3Dnew&labelSelector=a%3Dc", "fieldSelector=metadata.name%3Dnone",
	} {
		for _, form := range []string{"", table, table + "|includeObject=None", partial} {
			t.Run(selector+" "+form, func(t *testing.T) {
				t.Parallel()
				accept, parameter, _ := strings.Cut(form, "|")
				original, ours := s.ask(t, getAs(accept, widgets+"?watch=true&timeoutSeconds=1&resourceVersion=$before$&"+selector+"&"+parameter))
				require.Equal(t, original, ours, difference(original, ours))
				require.Equal(t, selector != "fieldSelector=metadata.name%3Dnone", strings.Contains(ours.text, "DELETED"))
			})
		}
	}
}
