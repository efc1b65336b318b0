package apiextensions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// policies are what a deletion may say of dependents, as its body or as its query: nothing, and each policy
// in its newer form, its older form, both, and forms that are wrong.
func policies() (bodies, queries []string) {
	bodies, queries = []string{``}, []string{``}
	for _, orphans := range []string{``, `true`, `false`} {
		for _, policy := range []string{``, `Orphan`, `Foreground`, `Background`, `Nope`} {
			var fields, parameters []string
			if orphans != "" {
				fields, parameters = append(fields, `"orphanDependents":`+orphans), append(parameters, "orphanDependents="+orphans)
			}
			if policy != "" {
				fields, parameters = append(fields, `"propagationPolicy":"`+policy+`"`), append(parameters, "propagationPolicy="+policy)
			}
			bodies = append(bodies, `{"apiVersion":"v1","kind":"DeleteOptions"`+strings.Join(append([]string{""}, fields...), ",")+`}`)
			queries = append(queries, strings.Join(parameters, "&"))
		}
	}
	bodies = append(bodies, `{"propagationPolicy":""}`, `{"propagationPolicy":"","orphanDependents":true}`, `{"orphanDependents":null,"propagationPolicy":null}`)
	return bodies, append(queries, "propagationPolicy=", "orphanDependents=", "orphanDependents=0", "orphanDependents=False")
}

// finalizers are those that an object may have before it is deleted, as JSON.
var finalizers = []string{
	`[]`, `["a.b/c"]`, `["orphan"]`, `["foregroundDeletion"]`, `["orphan","a.b/c"]`, `["a.b/c","foregroundDeletion","d.e/f"]`,
}

// Each object is deleted in each way, and those that are only marked once more, by each policy.
func TestPropagation_IsThatOfKubernetes(t *testing.T) {
	t.Parallel()
	s := &script{T: t, pair: newPair(t)}
	bodies, queries := policies()
	made := 0
	// deleted makes an object, which has these finalizers, deletes it in these ways, and lets go of it.
	deleted := func(before string, ways ...func(name string) request) {
		made++
		name := fmt.Sprint("p", made)
		s.same(post(widget(name, `,"finalizers":`+before, `{"size":1}`)))
		for _, way := range ways {
			s.same(way(name))
			s.same(get(widgets + "/" + name))
		}
		s.same(patch(mergePatch, name, `{"metadata":{"finalizers":null}}`))
	}
	by := func(query, body string) func(name string) request {
		return func(name string) request { return remove(name+"?"+query, body) }
	}
	for _, before := range finalizers {
		for _, body := range bodies {
			deleted(before, by("", body))
		}
		for _, query := range queries {
			deleted(before, by(query, ""))
		}
		for _, first := range []string{"", "propagationPolicy=Orphan", "propagationPolicy=Foreground", "propagationPolicy=Background"} {
			for _, second := range []string{"Orphan", "Foreground", "Background"} {
				deleted(before, by(first, ""), by("propagationPolicy="+second, ""), by("", ""))
			}
		}
	}
	require.Empty(t, strings.Join(s.wrong, "\n"))
	require.Greater(t, made, 300)
}
