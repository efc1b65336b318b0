package crd_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func widgets(t *testing.T) *crd.Definition {
	t.Helper()
	file, err := os.Open("testdata/widgets.yaml")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	all, err := crd.Parse(file)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

func newWidgets(t *testing.T) (object, status registry.Resource, s *registry.Store[unstructured.Unstructured]) {
	t.Helper()
	s, err := registry.New(widgets(t).Config())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.Resources()[0], s.Resources()[1], s
}

func TestParse_TakesWhatPeopleHave(t *testing.T) {
	d := widgets(t)
	require.Equal(t, registry.Kind{
		Group: "example.com", Version: "v1", Kind: "Widget", Plural: "widgets", Singular: "widget",
		ShortNames: []string{"wd"}, Categories: []string{"all"}, Status: true,
	}, d.Kind)
	require.Len(t, d.Notes, 1)
	require.Contains(t, d.Notes[0], "1 x-kubernetes-validations rules")
}

// Rules are counted wherever they are: without Options.Rules they would be ignored in silence.
func TestParse_NotesRulesThatAreNotEvaluated(t *testing.T) {
	const ruled = `{type: integer, x-kubernetes-validations: [{rule: self > 0}]}`
	for _, of := range []string{
		`properties: {a: ` + ruled + `}`,
		`properties: {a: {type: array, items: ` + ruled + `}}`,
		`properties: {a: {type: object, additionalProperties: ` + ruled + `}}`,
	} {
		all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{type: object", "{type: object, "+of, 1)))
		require.NoError(t, err)
		require.Equal(t, []string{"1 x-kubernetes-validations rules of version v1 are not evaluated"}, all[0].Notes, of)
	}
}

func TestParse_FailsAsItsReaderDoes(t *testing.T) {
	errPipe := errors.New("broken pipe")
	_, err := crd.Parse(io.MultiReader(strings.NewReader(plain), iotest.ErrReader(errPipe)))
	require.ErrorIs(t, err, errPipe)
	require.NotErrorIs(t, err, crd.ErrManifest)
}

func TestParse_RefusesWhatIsWrong(t *testing.T) {
	good, err := os.ReadFile("testdata/widgets.yaml")
	require.NoError(t, err)
	for mention, edit := range map[string]func(string) string{
		`kind is "" of apiVersion "v1"; give a Custom`: func(string) string { return "apiVersion: v1\n" },
		"kind is":               func(s string) string { return strings.Replace(s, "kind: CustomResourceDefinition", "kind: Widget", 1) },
		"spec.scope":            func(s string) string { return strings.Replace(s, "scope: Namespaced", "scope: Galaxy", 1) },
		"widgets.example.com\"": func(s string) string { return strings.Replace(s, "name: widgets.example.com", "name: gadgets", 1) },
		"spec.versions":         func(s string) string { return strings.ReplaceAll(s, "storage: true", "storage: false") },
		"jsonPath":              func(s string) string { return strings.Replace(s, ".spec.size, description", "'spec[', description", 1) },
		"openAPIV3Schema":       func(s string) string { return strings.Replace(s, "minimum: 0", "minimum: [0]", 1) },
		"of metadata": func(s string) string {
			return strings.Replace(s, "jsonPath: .spec.color\n", "jsonPath: .metadata.name\n", 1)
		},
		"spec.shape has no schema": func(s string) string {
			return strings.Replace(s, "              color:\n", "              shape:\n              color:\n", 1)
		},
		"has 101 versions; give at most 100": func(s string) string {
			one := strings.Index(s, "  - name: v1beta1")
			for i := range 99 {
				s = s[:one] + fmt.Sprintf("  - {name: v%d, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n", i+2) + s[one:]
			}
			return s
		},
		"no document":    func(string) string { return "# nothing\n" },
		"invalid Custom": func(string) string { return "a: [" },
	} {
		_, err := crd.Parse(strings.NewReader(edit(string(good))))
		require.ErrorIs(t, err, crd.ErrManifest, mention)
		require.ErrorContains(t, err, mention)
	}
	all, err := crd.Parse(strings.NewReader(string(good) + "\n---\n---\n" + strings.ReplaceAll(strings.ReplaceAll(string(good), "widget", "gadget"), "Widget", "Gadget")))
	require.NoError(t, err)
	require.Len(t, all, 2)
}

// The engine would refuse such a field once the kind is opened.
func TestParse_RefusesFieldsThatNoSelectorCanName(t *testing.T) {
	for _, name := range []string{"a=b", "a!b", "a,b", "a "} {
		v := fmt.Sprintf("{name: v1, served: true, storage: true, selectableFields: [{jsonPath: %q}],", "."+name)
		_, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{name: v1, served: true, storage: true,", v, 1)))
		require.ErrorIs(t, err, crd.ErrManifest, name)
		require.ErrorContains(t, err, strconv.Quote("."+name))
	}
}

// As in Kubernetes, a write of a custom resource's status leaves its metadata alone.
func TestStatus_LeavesTheMetadataAlone(t *testing.T) {
	object, status, s := newWidgets(t)
	it, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":1}}`), registry.WriteOptions{})
	require.NoError(t, err)
	_, _, err = status.Update(t.Context(), it.Key(), func(live registry.Item) ([]byte, error) {
		return []byte(`{"metadata":{"name":"a","resourceVersion":"` + live.Revision().String() + `","labels":{"a":"b"},"finalizers":["example.com/wait"]},"status":{"conditions":[]}}`), nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	o, err := s.Engine().Get(t.Context(), it.Key(), engine.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, o.Value.GetLabels())
	require.Empty(t, o.Value.GetFinalizers())
	require.Equal(t, map[string]any{"conditions": []any{}}, o.Value.Object["status"])
}

// plain is a manifest in which everything has an effect.
const plain = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  conversion: {strategy: None}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

func TestParse_NotesWhatHasNoEffectAndNothingElse(t *testing.T) {
	for more, want := range map[string][]string{
		"": nil,
		"  - {name: v1beta1, served: false, storage: false}":                                                             nil,
		"  - {name: v1beta1, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object}}}": nil,
	} {
		all, err := crd.Parse(strings.NewReader(plain + more))
		require.NoError(t, err, more)
		require.Equal(t, want, all[0].Notes, more)
	}
	var odd []string
	for i := range 12 {
		odd = append(odd, fmt.Sprintf("p%d: {type: string, format: o%d}", i, i))
	}
	for edit, want := range map[[2]string][]string{
		{"strategy: None", "strategy: Webhook"}: nil,
		{
			"strategy: None}\n  versions:\n",
			"strategy: Webhook}\n  versions:\n  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n",
		}: {"version v1beta1 is not served: there is no conversion by Webhook, and v1 is the one that is stored"},
		{"served: true", "served: true, deprecated: true"}: nil,
		{"kind: Thing", "kind: Thing, listKind: Things"}:   nil,
		{"{type: object}", "{type: object, properties: {a: {type: string, format: date-time}, b: {type: integer, format: int64}, c: {type: number, format: double}, d: {type: string, format: k8s-short-name}}}"}: nil,
		{"{type: object}", "{type: object, format: odd, properties: {a: {type: string, format: odd}, b: {type: integer, format: date}, c: {type: array, items: {type: string, anyOf: [{format: ip}]}}}}"}: {
			`version v1 has formats that have no effect: "date", "ip", "odd"`,
		},
		{"  names: {plural", "  scop: Cluster\n  names: {plurals: things, plural"}: {`the manifest has fields that have no effect: "spec.names.plurals", "spec.scop"`},
		{"storage: true,", "storage: true, subresource: {status: {}}, additionalPrinterColumns: [{name: A, type: string, jsonPath: .a, prio: 1}],"}: {
			`the manifest has fields that have no effect: "spec.versions[0].additionalPrinterColumns[0].prio", "spec.versions[0].subresource"`,
		},
		{"metadata: {name: things.example.com}", "metadata: {name: things.example.com, annotations: {a: b}, creationTimestamp: null}\nstatus: {storedVersions: [v1]}"}: nil,
		{"conversion: {strategy: None}", "conversion: {strategy: Webhook, webhook: {clientConfig: {url: https://example.org}, conversionReviewVersions: [v1]}}"}:       nil,
		{"{type: object}", "{type: object, x-mine: 1, properties: {maximun: {type: integer, maximun: 5}, b: {type: array, items: {type: string, anyOf: [{patern: a}]}}}}"}: {
			`version v1 has keywords in its schema that have no effect: "properties.b.items.anyOf[0].patern", "properties.maximun.maximun", "x-mine"`,
		},
		{"schema: {openAPIV3Schema: {type: object}}", "selectableFields: [{jsonPath: .a.b}, {jsonPath: .a.c}, {jsonPath: .b.c}, {jsonPath: .c.d}, {jsonPath: .d.e.f}], schema: {openAPIV3Schema: {type: object, properties: {" +
			"a: {type: object, properties: {b: {type: string}}}, b: {type: object, x-kubernetes-preserve-unknown-fields: true}, c: {type: object, additionalProperties: {type: string}}}}}"}: {
			`version v1 has selectable fields that have no effect: ".a.c", ".d.e.f"`,
		},
		{"{type: object}", "{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: object, x-kubernetes-map-type: atomic}}, " +
			"b: {type: array, x-kubernetes-list-type: set, items: {type: array, items: {type: string}}}, c: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}"}: {
			`version v1 has x-kubernetes-list-type: set for items of type "array", which server-side apply and rules in CEL do not support`,
			`version v1 has x-kubernetes-list-type: set for items of type "object", which server-side apply and rules in CEL do not support`,
		},
		{"{type: object}", "{type: object, properties: {" + strings.Join(odd, ", ") + "}}"}: {
			`version v1 has formats that have no effect: "o0", "o1", "o10", "o11", "o2", "o3", "o4", "o5", "o6", "o7", 2 more`,
		},
	} {
		all, err := crd.Parse(strings.NewReader(strings.Replace(plain, edit[0], edit[1], 1)))
		require.NoError(t, err, edit)
		require.Equal(t, want, all[0].Notes, edit)
	}
}

// The words are Kubernetes'. A version that is older, deprecated or not served is not recommended.
func TestDeprecated_NamesTheNewestVersion(t *testing.T) {
	const schema = ", schema: {openAPIV3Schema: {type: object}}}\n"
	for more, want := range map[string]string{
		"": "example.com/v1 Thing is deprecated",
		"  - {name: v1beta1, served: true, storage: false" + schema:                                                                        "example.com/v1 Thing is deprecated",
		"  - {name: v2, served: false, storage: false" + schema:                                                                            "example.com/v1 Thing is deprecated",
		"  - {name: v2, served: true, storage: false, deprecated: true" + schema:                                                           "example.com/v1 Thing is deprecated",
		"  - {name: v2, served: true, storage: false" + schema + "  - {name: v10, served: true, storage: false" + schema:                   "example.com/v1 Thing is deprecated; use example.com/v10 Thing",
		"  - {name: v10, served: true, storage: false" + schema + "  - {name: v3, served: true, storage: false" + schema:                   "example.com/v1 Thing is deprecated; use example.com/v10 Thing",
		"  - {name: v2, served: true, storage: false" + schema + "  - {name: v11, served: true, storage: false, deprecated: true" + schema: "example.com/v1 Thing is deprecated; use example.com/v2 Thing",
	} {
		all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "storage: true", "storage: true, deprecated: true", 1) + more))
		require.NoError(t, err, more)
		require.Equal(t, want, all[0].Config().Deprecated, more)
	}
	for edit, want := range map[string]string{
		"storage: true": "",
		"storage: true, deprecated: true, deprecationWarning: Go away.": "Go away.",
		"storage: true, deprecationWarning: Go away.":                   "",
	} {
		all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "storage: true", edit, 1)))
		require.NoError(t, err, edit)
		require.Equal(t, want, all[0].Config().Deprecated, edit)
	}
}

func TestListKind_IsThatOfTheManifest(t *testing.T) {
	for edit, want := range map[string]string{"kind: Thing": "ThingList", "kind: Thing, listKind: Things": "Things"} {
		all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "kind: Thing", edit, 1)))
		require.NoError(t, err, edit)
		require.Equal(t, want, all[0].Kind.ListGroupVersionKind().Kind, edit)
	}
	for _, wrong := range []string{"Thing", "Thing List"} {
		_, err := crd.Parse(strings.NewReader(strings.Replace(plain, "kind: Thing", "kind: Thing, listKind: "+wrong, 1)))
		require.ErrorIs(t, err, crd.ErrManifest)
		require.ErrorContains(t, err, "spec.names.listKind")
	}
}

// Without conversion the versions are of the same objects, each by its own rules. Storage has one
// set of fields to select by.
func TestVersions_AreAllThatAreServed(t *testing.T) {
	const more = `  - {name: v1beta1, served: true, storage: false, selectableFields: [{jsonPath: .spec.color}],
     schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {color: {type: string, maxLength: 3}}}}}}}
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`
	all, err := crd.Parse(strings.NewReader(plain + more))
	require.NoError(t, err)
	require.Len(t, all, 1)
	versions := all[0].Versions()
	require.Len(t, versions, 2)
	require.Same(t, all[0], versions[0])
	require.Equal(t, "v1", versions[0].Kind.Version)
	require.Equal(t, "v1beta1", versions[1].Kind.Version)
	for _, v := range versions {
		require.Contains(t, v.Config().Fields, "spec.color")
		require.Equal(t, "v1", v.Config().StorageVersion)
	}
	_, err = crd.Parse(strings.NewReader(plain + "  - {name: v1beta1, served: true, storage: false}\n"))
	require.ErrorIs(t, err, crd.ErrManifest, "it has no schema")
}

// Without a revision, a client would overwrite what it has not seen. The scale has one number.
func TestUpdate_OfACustomResourceNeedsARevision(t *testing.T) {
	object, status, s := newWidgets(t)
	it, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":3}}`), registry.WriteOptions{})
	require.NoError(t, err)
	update := func(r registry.Resource, body string) error {
		_, _, err := r.Update(t.Context(), it.Key(), func(registry.Item) ([]byte, error) { return []byte(body), nil }, registry.WriteOptions{})
		return err
	}
	for _, r := range []registry.Resource{object, status} {
		require.ErrorContains(t, update(r, `{"metadata":{"name":"a"},"spec":{"size":4}}`), "metadata.resourceVersion: Invalid value: 0: must be specified for an update")
	}
	require.NoError(t, update(s.Resources()[2], `{"metadata":{"name":"a"},"spec":{"replicas":4}}`))
}

// Two writers that add a finalizer of the same name would take each other's away.
func TestFinalizers_WithoutADomainAreWarnedOf(t *testing.T) {
	s := storeOf(t, "{type: object}")
	var warnings []string
	opts := registry.WriteOptions{Warn: func(text string) { warnings = append(warnings, text) }}
	_, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a","finalizers":["mine","example.com","example.com/mine","orphan","mine"]}}`), opts)
	require.NoError(t, err)
	const why = " to avoid accidental conflicts with other finalizer writers"
	require.Equal(t, []string{
		`metadata.finalizers: "example.com": prefer a domain-qualified finalizer name including a path (/)` + why,
		`metadata.finalizers: "mine": prefer a domain-qualified finalizer name` + why,
	}, warnings)
	warnings = nil
	_, _, err = s.Update(t.Context(), "default/a", func(old *engine.Object[unstructured.Unstructured]) (unstructured.Unstructured, error) {
		o := *old.Value.DeepCopy()
		o.SetFinalizers(append(o.GetFinalizers(), "late"))
		return o, nil
	}, opts)
	require.NoError(t, err)
	require.Equal(t, []string{`metadata.finalizers: "late": prefer a domain-qualified finalizer name` + why}, warnings, "the others were there")
}

// The status of a kind that has it as no subresource is a field as any other.
func TestGeneration_CountsTheStatusOfAKindWithoutThatSubresource(t *testing.T) {
	all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", 1)))
	require.NoError(t, err)
	s, err := registry.New(all[0].Config())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"status":{"n":1}}`), registry.WriteOptions{})
	require.NoError(t, err)
	o, _, err := s.Update(t.Context(), "default/a", func(old *engine.Object[unstructured.Unstructured]) (unstructured.Unstructured, error) {
		o := *old.Value.DeepCopy()
		o.Object["status"] = map[string]any{"n": int64(2)}
		return o, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, o.Value.GetGeneration())
}

func FuzzParse(f *testing.F) {
	good, err := os.ReadFile("testdata/widgets.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	f.Add("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := crd.Parse(strings.NewReader(text))
		if err != nil {
			require.ErrorIs(t, err, crd.ErrManifest)
			return
		}
		for _, d := range all {
			s, err := registry.New(d.Config())
			if err != nil {
				require.ErrorIs(t, err, engine.ErrConfig)
				continue
			}
			_, err = s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":1}}`), registry.WriteOptions{})
			_ = err // the schema may refuse it
			require.NoError(t, s.Close())
		}
	})
}
