package serve_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// withScale gives widgets a scale, which is their size.
func withScale(w *registry.Config[Widget], _ *serve.Config) {
	w.Scale = &registry.Scale[Widget]{
		Replicas:    func(w *Widget) (int32, bool) { return int32(w.Spec.Size), true },
		SetReplicas: func(w *Widget, n int32) { w.Spec.Size = int(n) },
		Selector:    func(*Widget) string { return "app=shop" },
	}
}

func TestScale_IsDiscoveredWithItsOwnKind(t *testing.T) {
	s := newServer(t, withScale)
	plain := s.get("/apis/example.com/v1")
	require.Equal(t, "widgets/scale autoscaling v1 Scale true [get patch update]", strings.Join([]string{
		plain.str("resources.1.name"), plain.str("resources.1.group"), plain.str("resources.1.version"), plain.str("resources.1.kind"),
		plain.str("resources.1.namespaced"), plain.str("resources.1.verbs"),
	}, " "))
	require.Equal(t, "widgets/status Widget", plain.str("resources.2.name")+" "+plain.str("resources.2.kind"))
	r := "items.0.versions.0.resources.0.subresources.0."
	a := s.get("/apis", "Accept", acceptAggregated)
	require.Equal(t, "scale autoscaling v1 Scale", strings.Join([]string{
		a.str(r + "subresource"), a.str(r + "responseKind.group"), a.str(r + "responseKind.version"), a.str(r + "responseKind.kind"),
	}, " "))

	doc := decodeJSON(t, s.get("/openapi/v3/apis/example.com/v1").body)
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	kind := map[string]any{"group": "autoscaling", "version": "v1", "kind": "Scale"}
	require.Equal(t, []any{kind}, schemas["autoscaling.v1.Scale"].(map[string]any)["x-kubernetes-group-version-kind"])
	path := doc["paths"].(map[string]any)["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/scale"].(map[string]any)
	require.Len(t, path, 3)
	for method, op := range path {
		require.Equal(t, kind, op.(map[string]any)["x-kubernetes-group-version-kind"], method)
		require.Contains(t, fmt.Sprint(op), "#/components/schemas/autoscaling.v1.Scale", method)
	}
	require.Equal(t, 404, newServer(t).get(inDefault+"/a/scale").code, "a kind without one has none")
}

func TestScale_IsReadAndWritten(t *testing.T) {
	s := newServer(t, withScale)
	s.create("a", 3)
	w := s.watch(inDefault + "?watch=1")
	w.expect("ADDED a")
	show := func(a answer) string {
		t.Helper()
		require.Less(t, a.code, 300, a.body)
		return strings.Join([]string{a.str("apiVersion"), a.str("kind"), a.str("metadata.name"), a.str("spec.replicas"), a.str("status.selector")}, " ")
	}
	first := s.get(inDefault + "/a/scale")
	require.Equal(t, "autoscaling/v1 Scale a 3 app=shop", show(first))
	require.Equal(t, "autoscaling/v1 Scale a 5 app=shop", show(s.do("PATCH", inDefault+"/a/scale", `{"spec":{"replicas":5}}`, "Content-Type", mergePatch)))
	w.expect("MODIFIED a")
	require.Equal(t, "5", s.get(inDefault+"/a").str("spec.size"))
	stale := s.do("PUT", inDefault+"/a/scale", strings.Replace(first.body, `"replicas":3`, `"replicas":6`, 1))
	require.Equal(t, "409 Conflict", fmt.Sprintf("%d %s", stale.code, stale.str("reason")), stale.body)
	fresh := s.get(inDefault + "/a/scale").body
	require.Equal(t, "autoscaling/v1 Scale a 6 app=shop", show(s.do("PUT", inDefault+"/a/scale", strings.Replace(fresh, `"replicas":5`, `"replicas":6`, 1))))
	require.Equal(t, 400, s.do("PUT", inDefault+"/a/scale", `{"spec":{"replicas":7}}`).code, "it has no name")
	jsonPatch := s.do("PATCH", inDefault+"/a/scale?dryRun=All", `[{"op":"replace","path":"/spec/replicas","value":0}]`, "Content-Type", "application/json-patch+json")
	require.Equal(t, "autoscaling/v1 Scale a 0 app=shop", show(jsonPatch))
	require.Equal(t, "6", s.get(inDefault+"/a").str("spec.size"))

	low := s.do("PATCH", inDefault+"/a/scale", `{"spec":{"replicas":-1}}`, "Content-Type", mergePatch)
	require.Equal(t, "422 Invalid spec.replicas", fmt.Sprintf("%d %s %s", low.code, low.str("reason"), low.str("details.causes.0.field")))
	unknown := s.do("PUT", inDefault+"/a/scale?fieldValidation=Strict", `{"metadata":{"name":"a"},"spec":{"replicas":1,"size":1}}`)
	require.Equal(t, 400, unknown.code)
	require.Contains(t, unknown.str("message"), `unknown field "spec.size"`)
	apply := s.do("PATCH", inDefault+"/a/scale?fieldManager=m", `{}`, "Content-Type", applyPatch)
	require.Equal(t, 415, apply.code)
	deletion := s.do("DELETE", inDefault+"/a/scale", "")
	require.Equal(t, "405 GET, HEAD, PATCH, PUT", fmt.Sprintf("%d %s", deletion.code, deletion.header.Get("Allow")))
	table := s.get(inDefault+"/a/scale", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	var columns, cells []string
	for i := range 3 {
		columns = append(columns, table.str(fmt.Sprintf("columnDefinitions.%d.name", i)))
		cells = append(cells, table.str(fmt.Sprintf("rows.0.cells.%d", i)))
	}
	require.Equal(t, []string{"Name", "Desired", "Available"}, columns)
	require.Equal(t, []string{"a", "6", "0"}, cells)
	require.Equal(t, 404, s.get(inDefault+"/b/scale").code)
}

func TestScale_IsAuthorizedAsASubresource(t *testing.T) {
	var asked []string
	s := newServer(t, withScale, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			if r.Subresource == "" {
				return nil
			}
			asked = append(asked, r.Verb+" "+r.Resource+"/"+r.Subresource)
			return errors.New("not you")
		}
	})
	s.create("a", 3)
	require.Equal(t, 403, s.get(inDefault+"/a/scale").code)
	require.Equal(t, 403, s.do("PATCH", inDefault+"/a/scale", `{"spec":{"replicas":5}}`, "Content-Type", mergePatch).code)
	require.Equal(t, 403, s.do("PUT", inDefault+"/a/scale", `{}`).code)
	require.Equal(t, []string{"get widgets/scale", "patch widgets/scale", "update widgets/scale"}, asked)
}

// A scale is an update of its manager, of one field.
func TestScale_IsRecordedUnderItsManager(t *testing.T) {
	s := newServer(t, withApply, withScale)
	require.Equal(t, 201, s.apply("?fieldManager=one", "{size: 1, color: red}").code)
	scaled := s.do("PATCH", inDefault+"/a/scale?fieldManager=scaler", `{"spec":{"replicas":5}}`, "Content-Type", mergePatch)
	require.Equal(t, 200, scaled.code, scaled.body)
	require.Empty(t, scaled.header.Get("Warning"))
	a := s.get(inDefault + "/a")
	require.Contains(t, a.body, `"manager":"scaler","operation":"Update"`)
	require.Contains(t, a.body, `"fieldsV1":{"f:spec":{"f:size":{}}},"subresource":"scale"`)
	no := s.apply("?fieldManager=one", "{size: 1, color: red}")
	require.Equal(t, "409 .spec.size", fmt.Sprintf("%d %s", no.code, no.str("details.causes.0.field")))
}

// applyScale applies a scale of the widget a.
func (s *server) applyScale(query, spec string) answer {
	s.t.Helper()
	return s.do("PATCH", inDefault+"/a/scale"+query, "apiVersion: autoscaling/v1\nkind: Scale\nspec: "+spec+"\n", "Content-Type", applyPatch)
}

// The manager that applies a scale owns the field that has the number of replicas, whatever its name.
func TestScale_IsApplied(t *testing.T) {
	s := newServer(t, withApply, withScale)
	require.Equal(t, 404, s.applyScale("?fieldManager=scaler", "{replicas: 5}").code, "a scale creates no object")
	require.Equal(t, 201, s.apply("?fieldManager=one", "{size: 1, color: red}").code)
	no := s.applyScale("?fieldManager=scaler", "{replicas: 5}")
	require.Equal(t, `409 .spec.size conflict with "one"`, fmt.Sprintf("%d %s %s", no.code, no.str("details.causes.0.field"), no.str("details.causes.0.message")))
	yes := s.applyScale("?fieldManager=scaler&force=true", "{replicas: 5}")
	require.Equal(t, "200 Scale a 5", fmt.Sprintf("%d %s %s %s", yes.code, yes.str("kind"), yes.str("metadata.name"), yes.str("spec.replicas")), yes.body)
	a := s.get(inDefault + "/a")
	require.Equal(t, "5 red", a.str("spec.size")+" "+a.str("spec.color"))
	require.Contains(t, a.body, `"manager":"scaler","operation":"Apply"`)
	require.Contains(t, a.body, `"fieldsV1":{"f:spec":{"f:size":{}}},"subresource":"scale"`)
	require.Equal(t, 409, s.apply("?fieldManager=one", "{size: 1, color: red}").code)
	same := s.applyScale("?fieldManager=scaler", "{replicas: 5}")
	require.Equal(t, "200 "+a.str("metadata.resourceVersion"), fmt.Sprintf("%d %s", same.code, same.str("metadata.resourceVersion")), "nothing has changed")
	most := s.applyScale("?fieldManager=scaler&dryRun=All", "{replicas: 2147483647}")
	require.Equal(t, "200 2147483647", fmt.Sprintf("%d %s", most.code, most.str("spec.replicas")))
	zero := s.applyScale("?fieldManager=scaler", "{replicas: 0}")
	require.Equal(t, "200 0", fmt.Sprintf("%d %s", zero.code, zero.str("spec.replicas")))
	stale := s.do("PATCH", inDefault+"/a/scale?fieldManager=scaler", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"resourceVersion":"`+a.str("metadata.resourceVersion")+`"},"spec":{"replicas":1}}`, "Content-Type", applyPatch)
	require.Equal(t, "409 Conflict", fmt.Sprintf("%d %s", stale.code, stale.str("reason")))
	for body, want := range map[string]string{
		"apiVersion: autoscaling/v1\nkind: Scale\nspec: {}\n":               "set spec.replicas",
		"apiVersion: autoscaling/v1\nkind: Scale\nspec: {replicas: many}\n": "not a valid Scale",
		"apiVersion: example.com/v1\nkind: Widget\nspec: {size: 1}\n":       "must have apiVersion: autoscaling/v1",
	} {
		wrong := s.do("PATCH", inDefault+"/a/scale?fieldManager=scaler", body, "Content-Type", applyPatch)
		require.Equal(t, 400, wrong.code, wrong.body)
		require.Contains(t, wrong.str("message"), want)
	}
	require.Equal(t, 422, s.applyScale("?fieldManager=scaler", "{replicas: -1}").code)
	require.Equal(t, 422, s.applyScale("", "{replicas: 1}").code, "it has to name its manager")
}

// A user that may write the scale alone must not get at what deletes or keeps the object.
func TestScale_ThatIsAppliedChangesNoMetadata(t *testing.T) {
	s := newServer(t, withApply, withScale)
	require.Equal(t, 201, s.apply("?fieldManager=one", "{size: 1}").code)
	config := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","labels":{"x":"y"},"annotations":{"x":"y"},"finalizers":["example.com/x"],
		"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"1"}]},"spec":{"replicas":3}}`
	scaled := s.do("PATCH", inDefault+"/a/scale?fieldManager=scaler&force=true", config, "Content-Type", applyPatch)
	require.Equal(t, "200 3", fmt.Sprintf("%d %s", scaled.code, scaled.str("spec.replicas")), scaled.body)
	a := s.get(inDefault + "/a")
	for _, field := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		require.Equal(t, "<nil>", a.str("metadata."+field), field)
	}
	require.Contains(t, a.body, `"fieldsV1":{"f:spec":{"f:size":{}}},"subresource":"scale"`)
}

// A user that may read the scale alone must not see the rest of the object's metadata, in whatever form.
func TestScale_ShowsNoMoreOfTheMetadataInOtherForms(t *testing.T) {
	s := newServer(t, withApply, withScale)
	object := `{"metadata":{"name":"a","labels":{"l":"hidden"},"annotations":{"n":"hidden"},"finalizers":["example.com/hidden"]},"spec":{"size":1}}`
	require.Equal(t, 201, s.do("POST", inDefault+"?fieldManager=hidden", object).code)
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	for accept, at := range map[string]string{as + "PartialObjectMetadata": "metadata.", as + "Table": "rows.0.object.metadata.", asJSON: "metadata."} {
		shown := s.get(inDefault+"/a/scale", "Accept", accept)
		written := s.do("PATCH", inDefault+"/a/scale", `{"spec":{"replicas":3}}`, "Content-Type", mergePatch, "Accept", accept)
		for _, a := range []answer{shown, written} {
			require.Equal(t, "200 a default", fmt.Sprintf("%d %s %s", a.code, a.str(at+"name"), a.str(at+"namespace")), a.body)
			require.NotContains(t, a.body, "hidden")
		}
		require.Equal(t, s.get(inDefault+"/a").str("metadata.resourceVersion"), written.str(at+"resourceVersion"))
	}
}

// An object and its scale are one state, of which readers of each get their own metadata.
func TestScale_AndItsObjectHaveTheirOwnMetadata(t *testing.T) {
	const as = "application/json;g=meta.k8s.io;v=v1;as="
	forms := map[string]string{as + "PartialObjectMetadata": "metadata.labels.l", as + "Table": "rows.0.object.metadata.labels.l"}
	for first := range forms {
		for second, at := range forms {
			s := newServer(t, withScale)
			require.Equal(t, 201, s.do("POST", inDefault, `{"metadata":{"name":"a","labels":{"l":"hidden"}},"spec":{"size":1}}`).code)
			s.cached()
			require.Equal(t, 200, s.get(inDefault+"/a", "Accept", first).code)
			require.NotContains(t, s.get(inDefault+"/a/scale", "Accept", second).body, "hidden", "%s, then %s", first, second)

			require.Equal(t, 201, s.do("POST", inDefault, `{"metadata":{"name":"b","labels":{"l":"hidden"}},"spec":{"size":1}}`).code)
			s.cached()
			require.Equal(t, 200, s.get(inDefault+"/b/scale", "Accept", first).code)
			require.Equal(t, "hidden", s.get(inDefault+"/b", "Accept", second).str(at), "%s, then %s", first, second)
		}
	}
}

// A kind that leaves zero out of its objects has no field to own for it.
func TestScale_OfZeroThatIsLeftOutCannotBeAppliedOverAnotherManager(t *testing.T) {
	s := newServer(t, withApply, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Scale = &registry.Scale[Widget]{
			Replicas:    func(w *Widget) (int32, bool) { return int32(len(w.Spec.Color)), true },
			SetReplicas: func(w *Widget, n int32) { w.Spec.Color = strings.Repeat("r", int(n)) },
		}
	})
	require.Equal(t, 201, s.apply("?fieldManager=one", "{size: 1, color: rr}").code)
	no := s.applyScale("?fieldManager=scaler&force=true", "{replicas: 0}")
	require.Equal(t, 400, no.code, no.body)
	require.Contains(t, no.str("message"), "0 replicas cannot be applied to this object")
	require.Equal(t, 200, s.applyScale("?fieldManager=scaler&force=true", "{replicas: 3}").code)
	require.Equal(t, "rrr", s.get(inDefault+"/a").str("spec.color"))
}

// What the kind decodes, its scale takes, too: clients send both in the same format.
func TestScale_IsDecodedAsTheKindIs(t *testing.T) {
	s := newServer(t, withScale, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Decoders = map[string]func([]byte) ([]byte, error){"application/yaml": yaml.YAMLToJSON}
	})
	s.create("a", 3)
	a := s.do("PUT", inDefault+"/a/scale", "{metadata: {name: a}, spec: {replicas: 4}}", "Content-Type", "application/yaml")
	require.Equal(t, "200 4", fmt.Sprintf("%d %s", a.code, a.str("spec.replicas")), a.body)
	require.Equal(t, 400, s.do("PUT", inDefault+"/a/scale", "{", "Content-Type", "application/yaml").code)
}
