package apiextensions_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/serve/apiextensions"
)

// Whatever clients do, in the end the server serves what the stored definitions say, and of two
// that share a name only one.
func TestDefinitions_RandomWritesEndInWhatIsStored(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &writer{newCluster(t, apiextensions.Config{}), rand.New(rand.NewPCG(seed, 0))}
				for range 60 {
					w.write()
					if w.r.IntN(3) == 0 {
						synctest.Wait()
					}
				}
				time.Sleep(time.Minute) // of the bubble: objects that finalizers keep are looked for again
				synctest.Wait()
				w.check()
			})
		})
	}
}

// writer writes at random to a few definitions, and to objects of their kinds.
type writer struct {
	*cluster
	r *rand.Rand
}

// plurals are those of the definitions. Their kinds and short names are of fewer names, so that
// many share one.
var plurals = []string{"as", "bs", "cs", "ds"}

// write does one thing.
func (w *writer) write() {
	plural := plurals[w.r.IntN(len(plurals))]
	path := definitionsPath + "/" + plural + ".example.com"
	objects := "/apis/example.com/v1/namespaces/default/" + plural
	switch w.r.IntN(6) {
	case 0, 1:
		w.do("POST", definitionsPath, w.definition(plural))
	case 2:
		o := &unstructured.Unstructured{}
		require.NoError(w.t, o.UnmarshalJSON([]byte(w.definition(plural))))
		o.SetResourceVersion(w.do("GET", path, "").object().GetResourceVersion())
		body, err := o.MarshalJSON()
		require.NoError(w.t, err)
		w.do("PUT", path, string(body))
	case 3:
		w.do("DELETE", path, "")
	case 4:
		w.do("POST", objects, fmt.Sprintf(`{"metadata":{"name":"o%d","finalizers":["example.com/hold"]}}`, w.r.IntN(3)))
	case 5:
		w.do("PATCH", fmt.Sprintf("%s/o%d", objects, w.r.IntN(3)), `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
	}
}

// definition returns a definition with that plural.
func (w *writer) definition(plural string) string {
	return definition(plural, []string{"Red", "Blue", "Grey"}[w.r.IntN(3)], func(spec map[string]any) {
		spec["names"].(map[string]any)["shortNames"] = []any{[]string{"x", "y", plural + "x"}[w.r.IntN(3)]}
		if w.r.IntN(2) == 0 {
			addVersion(spec)
		}
	})
}

// check compares what is served with what is stored.
func (w *writer) check() {
	names := map[string]string{} // of the kinds that are served, with their definitions
	for _, plural := range plurals {
		answer := w.do("GET", definitionsPath+"/"+plural+".example.com", "")
		code := func(version string) int { return w.do("GET", "/apis/example.com/"+version+"/"+plural, "").Code }
		if answer.Code == 404 {
			require.Equal(w.t, 404, code("v1"), plural)
			require.Equal(w.t, 404, code("v1beta1"), plural)
			continue
		}
		o := answer.object()
		about := fmt.Sprint(o.Object)
		if !slices.Contains(conditions(o), "Established=True") {
			require.Contains(w.t, conditions(o), "NamesAccepted=False", about)
			require.Equal(w.t, 404, code("v1"), about)
			continue
		}
		require.Equal(w.t, 200, code("v1"), about)
		accepted, _, _ := unstructured.NestedMap(o.Object, "status", "acceptedNames")
		for _, name := range append(accepted["shortNames"].([]any), accepted["kind"]) {
			require.Empty(w.t, names[name.(string)], "%s has it, too: %s", name, about)
			names[name.(string)] = plural
		}
		if slices.Contains(conditions(o), "NamesAccepted=True") {
			versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
			require.Equal(w.t, map[int]int{1: 404, 2: 200}[len(versions)], code("v1beta1"), about)
		}
		if o.GetDeletionTimestamp() != nil {
			require.NotContains(w.t, w.must(200, "GET", "/apis/example.com/v1/"+plural, "").Body.String(), `"items":[]`, "nothing keeps it")
		}
	}
	for _, plural := range plurals {
		o := w.do("GET", definitionsPath+"/"+plural+".example.com", "").object()
		if slices.Contains(conditions(o), "NamesAccepted=False") {
			spec, _, _ := unstructured.NestedMap(o.Object, "spec", "names")
			short := spec["shortNames"].([]any)[0].(string)
			others := []string{names[short], names[spec["kind"].(string)]}
			require.True(w.t, slices.ContainsFunc(others, func(other string) bool { return other != "" && other != plural }), "no other kind has its names: %v", o.Object)
		}
	}
}
