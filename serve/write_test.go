package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

const (
	mergePatch = "application/merge-patch+json"
	jsonPatch  = "application/json-patch+json"
	asJSON     = "application/json"
)

func TestWrite_CreateUpdatePatchDelete(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	live := s.get(inDefault + "/a")
	put := s.do("PUT", inDefault+"/a", strings.Replace(live.body, `"size":1`, `"size":2`, 1))
	require.Equal(t, 200, put.code, put.body)
	require.Equal(t, "2 2", put.str("spec.size")+" "+put.str("metadata.generation"))
	stale := s.do("PUT", inDefault+"/a", live.body)
	require.Equal(t, "409 Conflict", fmt.Sprintf("%d %s", stale.code, stale.str("reason")))
	require.Contains(t, stale.str("message"), "the object has been modified; please apply your changes to the latest version and try again")

	merged := s.do("PATCH", inDefault+"/a", `{"metadata":{"labels":{"x":"y"}}}`, "Content-Type", mergePatch)
	require.Equal(t, "200 y 2", fmt.Sprintf("%d %s %s", merged.code, merged.str("metadata.labels.x"), merged.str("metadata.generation")))
	patched := s.do("PATCH", inDefault+"/a", `[{"op":"replace","path":"/spec/size","value":9}]`, "Content-Type", jsonPatch)
	require.Equal(t, "200 9", fmt.Sprintf("%d %s", patched.code, patched.str("spec.size")))
	status := s.do("PATCH", inDefault+"/a/status", `{"spec":{"size":1},"status":{"phase":"Ready"}}`, "Content-Type", mergePatch)
	require.Equal(t, "200 9 Ready", fmt.Sprintf("%d %s %s", status.code, status.str("spec.size"), status.str("status.phase")))

	gone := s.do("DELETE", inDefault+"/a", "")
	require.Equal(t, "200 Success widgets a "+live.str("metadata.uid"), fmt.Sprintf("%d %s %s %s %s", gone.code, gone.str("status"), gone.str("details.kind"), gone.str("details.name"), gone.str("details.uid")))
	require.Equal(t, s.get(inDefault).str("metadata.resourceVersion"), gone.str("metadata.resourceVersion"), "the revision of the deletion")
	require.Equal(t, 404, s.do("DELETE", inDefault+"/a", "").code)
}

func TestWrite_DeletionWithFinalizers(t *testing.T) {
	s := newServer(t)
	a := s.do("POST", inDefault, `{"metadata":{"name":"a","finalizers":["example.com/x"]},"spec":{"size":1}}`)
	require.Equal(t, 201, a.code)
	marked := s.do("DELETE", inDefault+"/a", `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background","preconditions":{"uid":"`+a.str("metadata.uid")+`"}}`)
	require.Equal(t, "200 Widget", fmt.Sprintf("%d %s", marked.code, marked.str("kind")))
	require.NotEqual(t, "<nil>", marked.str("metadata.deletionTimestamp"))
	last := s.do("PATCH", inDefault+"/a", `{"metadata":{"finalizers":null}}`, "Content-Type", mergePatch)
	require.Equal(t, 200, last.code)
	require.Equal(t, 404, s.get(inDefault+"/a").code)
}

// Clients that make an object anew wait while its predecessor goes, which they know by the text.
func TestWrite_ACreationIsToldThatItsPredecessorIsBeingDeleted(t *testing.T) {
	s := newServer(t)
	create := func() answer {
		return s.do("POST", inDefault, `{"metadata":{"name":"a","finalizers":["example.com/x"]},"spec":{"size":1}}`)
	}
	require.Equal(t, 201, create().code)
	again := create()
	require.Equal(t, `409 AlreadyExists widgets.example.com "a" already exists`, fmt.Sprintf("%d %s %s", again.code, again.str("reason"), again.str("message")))
	require.Equal(t, 200, s.do("DELETE", inDefault+"/a", "").code)
	again = create()
	require.Equal(t, `409 AlreadyExists object is being deleted: widgets.example.com "a" already exists`, fmt.Sprintf("%d %s %s", again.code, again.str("reason"), again.str("message")))
}

// A resourceVersion of zero in a body is none: such an update has no condition, and is
// invalid where a kind requires one.
func TestWrite_RevisionZeroIsNone(t *testing.T) {
	const body = `{"metadata":{"name":"a","resourceVersion":"0"},"spec":{"size":2}}`
	s := newServer(t)
	first := s.create("a", 1)
	got := s.do("PUT", inDefault+"/a", body)
	require.Equal(t, 200, got.code, got.body)
	require.NotContains(t, []string{"0", first}, got.str("metadata.resourceVersion"))

	s = newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.Strategy.RevisionRequired = true })
	s.create("a", 1)
	got = s.do("PUT", inDefault+"/a", body)
	require.Equal(t, "422 Invalid", fmt.Sprintf("%d %s", got.code, got.str("reason")))
}

// A creation, too, may have a resourceVersion of zero, as clients send it that write out every
// field.
func TestWrite_CreationWithRevisionZero(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.Strategy.CreateOnUpdate = true })
	const zero = `{"metadata":{"name":"%s","resourceVersion":"0"}}`
	for _, got := range []answer{s.do("POST", inDefault, fmt.Sprintf(zero, "a")), s.do("PUT", inDefault+"/b", fmt.Sprintf(zero, "b"))} {
		require.Equal(t, 201, got.code, got.body)
		require.Greater(t, len(got.str("metadata.resourceVersion")), 1)
	}
	require.Equal(t, 400, s.do("POST", inDefault, `{"metadata":{"name":"c","resourceVersion":"1"}}`).code)
}

// Names of JSON are what they are written, as in Kubernetes, where a field with another case is
// none.
func TestWrite_FieldsOfAnotherCaseAreNone(t *testing.T) {
	audited := make(chan string, 3)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Audit = func(_ context.Context, e serve.Audited) { audited <- e.Request.Name }
	})
	created := s.do("POST", inDefault, `{"metadata":{"name":"a"},"METADATA":{"name":"b"}}`)
	require.Equal(t, "201 a", fmt.Sprintf("%d %s", created.code, created.str("metadata.name")))
	deleted := s.do("DELETE", inDefault+"/a", `{"dryRun":["All"],"DRYRUN":[]}`)
	require.Equal(t, 200, deleted.code, deleted.body)
	require.Equal(t, 200, s.get(inDefault+"/a").code, "it was a dry run")
	require.Equal(t, "a a a", strings.Join([]string{<-audited, <-audited, <-audited}, " "))
}

// A precondition that names no object is met by none. What is missing is missing, whatever
// the precondition.
func TestWrite_Preconditions(t *testing.T) {
	s := newServer(t)
	revision := s.create("a", 1)
	for _, precondition := range []string{
		`"uid":"other"`, `"uid":""`, `"resourceVersion":"1234567"`, `"resourceVersion":"of another server"`, `"resourceVersion":""`,
		`"resourceVersion":"0"`, `"resourceVersion":"0` + revision + `"`, `"resourceVersion":"99999999999999999999"`,
	} {
		options := `{"preconditions":{` + precondition + `}}`
		got := s.do("DELETE", inDefault+"/a", options)
		require.Equal(t, "409 Conflict", fmt.Sprintf("%d %s", got.code, got.str("reason")), precondition)
		require.Equal(t, 409, s.do("DELETE", inDefault, options).code, precondition)
		got = s.do("DELETE", inDefault+"/none", options)
		require.Equal(t, "404 NotFound", fmt.Sprintf("%d %s", got.code, got.str("reason")), precondition)
	}
	require.Equal(t, 404, s.do("PUT", inDefault+"/none", `{"metadata":{"name":"none","resourceVersion":"of another server"}}`).code)
	require.Equal(t, 404, s.do("PATCH", inDefault+"/none", `{"metadata":{"resourceVersion":"of another server"}}`, "Content-Type", mergePatch).code)
	require.Equal(t, 200, s.do("DELETE", inDefault+"/a", `{"preconditions":{"resourceVersion":"`+revision+`"}}`).code)
}

func TestWrite_DryRunStoresNothing(t *testing.T) {
	s := newServer(t)
	a := s.do("POST", inDefault+"?dryRun=All", `{"metadata":{"name":"a"},"spec":{"size":1}}`)
	require.Equal(t, 201, a.code)
	table := s.do("POST", inDefault+"?dryRun=All", `{"metadata":{"name":"a"}}`, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	require.Equal(t, "a <nil>", table.str("rows.0.cells.0")+" "+table.str("metadata.resourceVersion"))
	require.Equal(t, 404, s.get(inDefault+"/a").code)
	s.create("a", 1)
	require.Equal(t, "5", s.do("PATCH", inDefault+"/a?dryRun=All", `{"spec":{"size":5}}`, "Content-Type", mergePatch).str("spec.size"))
	require.Equal(t, 200, s.do("DELETE", inDefault+"/a?dryRun=All", "").code)
	require.Equal(t, "1", s.get(inDefault+"/a").str("spec.size"))
}

func TestWrite_BodiesOfOtherKindsAreRefused(t *testing.T) {
	s := newServer(t)
	for body, is := range map[string]string{
		`{"kind":"Gadget"}`: "Gadget", `{"apiVersion":"example.com/v2"}`: "example.com/v2",
		`{"apiVersion":"v1","kind":"Widget"}`: "v1 Widget",
	} {
		got := s.do("POST", inDefault, body)
		require.Equal(t, 400, got.code)
		require.Equal(t, "the body is of "+is+", but the request is for example.com/v1 Widget", got.str("message"))
	}
}

func TestWrite_UnknownFieldsAreToldOrRefused(t *testing.T) {
	s := newServer(t)
	body := func(name string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"size":1,"say \"hi\"":2}}`
	}
	warned := s.do("POST", inDefault, body("a"))
	require.Equal(t, 201, warned.code)
	require.Equal(t, []string{`299 - "unknown field \"spec.say \\\"hi\\\"\""`}, warned.header.Values("Warning"))
	require.Empty(t, s.do("POST", inDefault+"?fieldValidation=Ignore", body("b")).header.Values("Warning"))
	strict := s.do("POST", inDefault+"?fieldValidation=Strict", body("c"))
	require.Equal(t, "400 BadRequest", fmt.Sprintf("%d %s", strict.code, strict.str("reason")))
	require.Contains(t, strict.str("message"), `strict decoding error: unknown field "spec.say \"hi\""`)
}

// A kind that creates on update does so by updates alone: a patch has nothing to apply to.
func TestWrite_PatchesCreateNothing(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.Strategy.CreateOnUpdate = true })
	for media, patch := range map[string]string{mergePatch: `{"metadata":{"name":"a"}}`, jsonPatch: `[{"op":"add","path":"/spec","value":{}}]`} {
		a := s.do("PATCH", inDefault+"/a", patch, "Content-Type", media)
		require.Equal(t, "404 NotFound", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
	}
	require.Equal(t, 201, s.do("PUT", inDefault+"/a", `{"metadata":{"name":"a"}}`).code)
}

// A client may name its format even where it sends nothing in it.
func TestWrite_NothingNeedsNoDecoding(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Decoders = map[string]func([]byte) ([]byte, error){"application/other": func([]byte) ([]byte, error) { return nil, errors.New("it has no magic") }}
	})
	s.create("a", 1)
	require.Equal(t, 400, s.do("DELETE", inDefault+"/a", "{}", "Content-Type", "application/other").code)
	require.Equal(t, 200, s.do("DELETE", inDefault+"/a?dryRun=All", "", "Content-Type", "application/other").code)
	for _, path := range []string{inDefault + "/a", inDefault} {
		require.Equal(t, 415, s.do("DELETE", path, "{}", "Content-Type", "text/plain").code)
		require.Equal(t, 200, s.do("DELETE", path, "", "Content-Type", "text/plain").code)
	}
}

// Which object is meant may be in the query, too, where a deletion has no body.
func TestDelete_PreconditionsOfTheQuery(t *testing.T) {
	s := newServer(t)
	revision := s.create("a", 1)
	for _, query := range []string{"?uid=other", "?resourceVersion=1" + revision, "?uid=other&resourceVersion=" + revision} {
		a := s.do("DELETE", inDefault+"/a"+query, "")
		require.Equal(t, "409 Conflict", fmt.Sprintf("%d %s", a.code, a.str("reason")), query)
	}
	require.Equal(t, 409, s.do("DELETE", inDefault+"?uid=other", "").code)
	uid := s.get(inDefault + "/a").str("metadata.uid")
	require.Equal(t, 200, s.do("DELETE", inDefault+"/a?uid="+uid+"&resourceVersion="+revision, "").code)
	s.create("a", 1)
	require.Equal(t, 200, s.do("DELETE", inDefault+"?resourceVersion=0", "").code)
}

// What a patch says twice, or of no operation, is told like unknown fields of a body.
func TestWrite_RepeatedFieldsOfPatchesAreToldOrRefused(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	for _, c := range []struct{ media, body, want string }{
		{mergePatch, `{"spec":{"size":2,"size":3}}`, `the patch: duplicate field "spec.size"`},
		{jsonPatch, `[{"op":"add","path":"/spec/size","value":2,"value":3}]`, `the patch: duplicate field "[0].value"`},
		{jsonPatch, `[{"op":"add","path":"/spec/size","value":3,"values":2}]`, `the patch: unknown field "[0].values"`},
	} {
		patch := func(validation string) answer {
			return s.do("PATCH", inDefault+"/a?dryRun=All&fieldValidation="+validation, c.body, "Content-Type", c.media)
		}
		strict := patch("Strict")
		require.Equal(t, ` "" is invalid: patch: Invalid value: strict decoding error: `+c.want, strict.str("message"))
		require.Equal(t, 422, strict.code)
		require.Empty(t, patch("Ignore").header.Values("Warning"))
		for _, validation := range []string{"", "Warn"} {
			warned := patch(validation)
			require.Equal(t, "200 3", fmt.Sprintf("%d %s", warned.code, warned.str("spec.size")))
			require.Equal(t, []string{"299 - " + strconv.Quote(c.want)}, warned.header.Values("Warning"))
		}
	}
	none := s.do("PATCH", inDefault+"/a?fieldValidation=Strict", "null", "Content-Type", jsonPatch)
	require.Equal(t, "200 1", fmt.Sprintf("%d %s", none.code, none.str("spec.size")), "it has no operations")
}

// By the status kubectl edit knows that its user may correct the patch, and by the cause it says why.
func TestWrite_PatchesWhoseResultIsNoObjectAreInvalid(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	for _, c := range []struct{ query, media, body, want string }{
		{"?fieldValidation=Strict", mergePatch, `{"spec":{"wrong":2}}`, `strict decoding error: unknown field "spec.wrong"`},
		{"?fieldValidation=Strict", jsonPatch, `[{"op":"add","path":"/spec/wrong","value":2}]`, `strict decoding error: unknown field "spec.wrong"`},
		{"", mergePatch, `{"spec":{"size":"x"}}`, "the body is not a valid Widget: "},
		{"", mergePatch, `{"metadata":{"labels":{"a":1}}}`, "the body is not a valid Widget: "},
	} {
		a := s.do("PATCH", inDefault+"/a"+c.query, c.body, "Content-Type", c.media)
		require.Equal(t, "422 Invalid", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
		require.Equal(t, "FieldValueInvalid patch", a.str("details.causes.0.reason")+" "+a.str("details.causes.0.field"), a.body)
		require.Contains(t, a.str("details.causes.0.message"), c.want)
	}
	require.Equal(t, 400, s.do("PATCH", inDefault+"/a", `{"metadata":{"name":"b"}}`, "Content-Type", mergePatch).code, "it is another object")
	require.Equal(t, 400, s.do("PATCH", inDefault+"/a", `{"spec":`, "Content-Type", mergePatch).code, "it is no patch")
}

// Creations and updates have no option force, so that it is ignored like any other unknown one.
func TestWrite_ForceIsOfPatchesAlone(t *testing.T) {
	s := newServer(t)
	require.Equal(t, 201, s.do("POST", inDefault+"?force=true", `{"metadata":{"name":"a"},"spec":{"size":1}}`).code)
	require.Equal(t, 200, s.do("PUT", inDefault+"/a?force=true", `{"metadata":{"name":"a"},"spec":{"size":2}}`).code)
}

func TestWrite_ClusterScopedKinds(t *testing.T) {
	s := newServer(t)
	zones := "/apis/example.com/v1/zones"
	require.Equal(t, 201, s.do("POST", zones, `{"metadata":{"name":"eu"},"spec":{"size":1}}`).code)
	require.Equal(t, "eu", s.get(zones+"/eu").str("metadata.name"))
	require.Equal(t, "eu", s.get(zones+"?fieldSelector=metadata.name%3Deu").str("items.0.metadata.name"))
	require.Equal(t, 404, s.get(zones+"/eu/status").code, "it has none")
	require.Equal(t, 200, s.do("DELETE", zones+"/eu", "").code)
}

// A name that is none of a host's is found under its path.
func TestNames_ThatNeedEscapingAreServed(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Strategy.ValidateName = func(string, bool) []string { return nil }
	})
	for _, name := range []string{"system:node", "a b", "ü?#&+", "a,b=c"} {
		made := s.do("POST", inDefault, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"size":1}}`, name))
		require.Equal(t, 201, made.code, made.body)
		got := s.get(inDefault + "/" + url.PathEscape(name))
		require.Equal(t, name, got.str("metadata.name"), got.body)
		require.Equal(t, "1", s.get(inDefault+"?fieldSelector="+url.QueryEscape("metadata.name="+fields.EscapeValue(name))).str("items.0.spec.size"))
		s.watch("/apis/example.com/v1/watch/namespaces/default/widgets/" + url.PathEscape(name)).expect("ADDED " + name)
		require.Equal(t, 200, s.do("DELETE", inDefault+"/"+url.PathEscape(name), "").code)
	}
}

// What is not stored is asked for once, so its bytes would only take the place of others'.
func TestEncodings_OfADryRunAreNotKept(t *testing.T) {
	s := newServer(t)
	require.Equal(t, 201, s.do("POST", inDefault+"?dryRun=All", `{"metadata":{"name":"a"}}`).code)
	require.Zero(t, s.handler.Stats().EncodingBytes)
	s.create("a", 1)
	require.NotZero(t, s.handler.Stats().EncodingBytes)
}

// A garbage collector beside the server learns by finalizers what is to become of dependents.
func TestWrite_DeletionTellsAGarbageCollectorOfThePolicy(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.GarbageCollection = true })
	for _, c := range []struct{ query, options, want string }{
		{"?propagationPolicy=Orphan", "", "200 Widget [orphan]"},
		{"", `{"propagationPolicy":"Foreground"}`, "200 Widget [foregroundDeletion]"},
		{"?orphanDependents=true", "", "200 Widget [orphan]"},
		{"?orphanDependents=false", "", "200 Status <nil>"},
		{"?dryRun=All&propagationPolicy=Orphan", "", "200 Widget [orphan]"},
		{"", "", "200 Status <nil>"},
	} {
		s.create("a", 1)
		deleted := s.do("DELETE", inDefault+"/a"+c.query, c.options)
		require.Equal(t, c.want, fmt.Sprintf("%d %s %s", deleted.code, deleted.str("kind"), deleted.str("metadata.finalizers")), "%v: %s", c, deleted.body)
		if deleted.str("kind") == "Status" {
			require.Equal(t, 404, s.get(inDefault+"/a").code)
			continue
		}
		require.NotEqual(t, "<nil>", deleted.str("metadata.deletionTimestamp"))
		if strings.Contains(c.query, "dryRun") {
			require.Equal(t, "<nil>", s.get(inDefault+"/a").str("metadata.finalizers"))
			require.Equal(t, 200, s.do("DELETE", inDefault+"/a", "").code)
			continue
		}
		require.Equal(t, 200, s.do("PATCH", inDefault+"/a", `{"metadata":{"finalizers":null}}`, "Content-Type", mergePatch).code)
		require.Equal(t, 404, s.get(inDefault+"/a").code)
	}
}

// As in Kubernetes, clients that use the older form are told that the deletion has only begun.
func TestWrite_DeletionThatHasOnlyBegun(t *testing.T) {
	s := newServer(t)
	a := s.do("POST", inDefault, `{"metadata":{"name":"a","finalizers":["example.com/x"]},"spec":{"size":1}}`)
	require.Equal(t, 201, a.code)
	for query, want := range map[string]string{"?orphanDependents=false": "202 Widget", "?orphanDependents=true": "200 Widget", "?propagationPolicy=Background": "200 Widget"} {
		marked := s.do("DELETE", inDefault+"/a"+query, "")
		require.Equal(t, want, fmt.Sprintf("%d %s", marked.code, marked.str("kind")), query)
	}
}

// An object that can be read stays, as in Kubernetes: the client wants to be rid of those that cannot.
func TestWrite_DeletionOfUnreadableObjectsAloneLeavesOthers(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	const only = `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`
	for path, want := range map[string]string{"/a": "409 Conflict", "/b": "404 NotFound", "": "422 Invalid"} {
		a := s.do("DELETE", inDefault+path, only)
		require.Equal(t, want, fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
	}
	query := s.do("DELETE", inDefault+"/a?ignoreStoreReadErrorWithClusterBreakingPotential=true", "")
	require.Equal(t, 409, query.code)
	require.Contains(t, query.str("message"), "this one can be read")
	require.Equal(t, 200, s.get(inDefault+"/a").code)
}
