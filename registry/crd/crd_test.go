package crd_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

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

func open(t *testing.T) (object, status registry.Resource, s *registry.Store[unstructured.Unstructured]) {
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
	object, status, s := open(t)
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

func TestSchema_KeepsUnknownFieldsWhereTheManifestSaysSo(t *testing.T) {
	for edit, kept := range map[string]bool{"": false, "  preserveUnknownFields: true\n": true} {
		all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "  versions:", edit+"  versions:", 1)))
		require.NoError(t, err)
		s, err := registry.New(all[0].Config())
		require.NoError(t, err)
		it, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"more":1}`), registry.WriteOptions{})
		require.NoError(t, err)
		text, err := it.JSON()
		require.NoError(t, err)
		require.Equal(t, kept, strings.Contains(string(text), `"more":1`), string(text))
		require.NoError(t, s.Close())
	}
}

// The paths of what is pruned have the names of the fields above, which may be as long as a body.
func TestSchema_TellsTheFirstPathsAloneThatItPrunes(t *testing.T) {
	prune := cogs(t, versioned{"v1", `"parts":{"type":"object","additionalProperties":{"type":"object","properties":{"size":{"type":"integer"}}}}`, true, true})["v1"].Config().Prune
	long := strings.Repeat("x", 100_000)
	part := map[string]any{"size": int64(1)}
	for i := range 2000 {
		part[fmt.Sprintf("f%04d", i)] = int64(i)
	}
	o := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"parts": map[string]any{long: part}}}}
	gone := prune(&o)
	require.Equal(t, map[string]any{"size": int64(1)}, part)
	require.Len(t, gone, 100)
	require.Less(t, len(strings.Join(gone, "")), 1_000_000)
	require.Equal(t, "spec.parts."+long[:200]+"….f0000", gone[0])
	require.Equal(t, []string{"spec.other"}, prune(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"other": true}}}))
}

func TestSchema_DefaultsPrunesAndValidates(t *testing.T) {
	object, _, s := open(t)
	var warnings []string
	opts := registry.WriteOptions{Warn: func(text string) { warnings = append(warnings, text) }}
	it, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":3,"colour":"x","color":null,
		"parts":[{"name":"x","more":1}],"extra":{"any":{"thing":1}},"limits":{"cpu":1},"port":"http"}}`), opts)
	require.NoError(t, err)
	require.Equal(t, []string{`unknown field "spec.colour"`, `unknown field "spec.parts[0].more"`}, warnings)
	o, err := s.Engine().Get(t.Context(), it.Key(), engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"size": int64(3), "color": "grey", "port": "http", "limits": map[string]any{"cpu": int64(1)},
		"parts": []any{map[string]any{"name": "x", "count": int64(1)}}, "extra": map[string]any{"any": map[string]any{"thing": int64(1)}},
	}, o.Value.Object["spec"])
	require.Equal(t, []string{"a", "default", "grey"}, o.Fields, "the third is spec.color")

	for body, fields := range map[string][]string{
		`{"spec":{"size":-1}}`:                 {".spec.size", "spec.size"}, // which is the scale's, too
		`{"spec":{"size":101,"color":"blue"}}`: {"spec.color", "spec.size"},
		`{"spec":{"size":"big"}}`:              {".spec.size", "spec.size"},
		`{"spec":{}}`:                          {"spec.size"},
		`{}`:                                   {"spec"},
		`{"spec":{"size":1,"parts":[{"name":"X"}]}}`:                                        {"spec.parts[0].name"},
		`{"spec":{"size":1,"limits":{"cpu":"x"}}}`:                                          {"spec.limits.cpu"},
		`{"spec":{"size":1,"parts":[{"name":"x"},{"name":"x"},{"name":"x"},{"name":"x"}]}}`: {"spec.parts"},
	} {
		_, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"bad"},`+strings.TrimPrefix(strings.Replace(body, "{}", `{"x":1}`, 1), "{")), registry.WriteOptions{Validation: registry.IgnoreUnknown})
		var invalid *registry.InvalidError
		require.ErrorAs(t, err, &invalid, body)
		var got []string
		for _, e := range invalid.Errors {
			got = append(got, e.Field)
		}
		slices.Sort(got)
		require.Equal(t, fields, got, "%s: %v", body, err)
	}
}

// Without a revision, a client would overwrite what it has not seen. The scale has one number.
func TestUpdate_OfACustomResourceNeedsARevision(t *testing.T) {
	object, status, s := open(t)
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

func TestColumns_ShowWhatTheirPathsFind(t *testing.T) {
	object, status, _ := open(t)
	it, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a","annotations":{"example.com/note":"hi"}},"spec":{"size":3}}`), registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, []any{int64(3), nil, "hi"}, it.AppendCells(nil)[:3])
	it, _, err = status.Update(t.Context(), it.Key(), func(live registry.Item) ([]byte, error) {
		return []byte(`{"metadata":{"name":"a","resourceVersion":"` + live.Revision().String() + `"},"status":{"conditions":[{"type":"Other","status":"No"},{"type":"Ready","status":"True"}]}}`), nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, "True", it.AppendCells(nil)[1])
	require.Regexp(t, `^\d+s$`, it.AppendCells(nil)[3])
}

// As in Kubernetes, tables have the age of each object only if the definition names no columns, or this one.
func TestColumns_AreTheAgeIfThereAreNone(t *testing.T) {
	for manifest, want := range map[string][]string{plain: {"Age date"}, withColumn(".spec.v"): {"X string"}} {
		all, err := crd.Parse(strings.NewReader(manifest))
		require.NoError(t, err)
		s, err := registry.New(all[0].Config())
		require.NoError(t, err)
		info := s.Resources()[0].Info()
		var got []string
		for _, c := range info.Columns {
			got = append(got, c.Name+" "+c.Type)
		}
		require.Equal(t, want, got)
		require.True(t, info.NoAge)
		it, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"}}`), registry.WriteOptions{})
		require.NoError(t, err)
		if want[0] == "Age date" {
			require.Regexp(t, `^\d+s$`, it.AppendCells(nil)[0])
		}
		require.NoError(t, s.Close())
	}
}

// A column shows what is of its type. kubectl would print another value in a form that scripts do
// not expect.
func TestColumns_ShowValuesOfTheirTypeAlone(t *testing.T) {
	for columnType, cells := range map[string]map[string]any{
		"integer": {`3`: int64(3), `3.7`: int64(3), `"3"`: nil, `true`: nil, `{"a":1}`: nil},
		"number":  {`3`: int64(3), `3.5`: 3.5, `"3"`: nil, `true`: nil, `[1]`: nil},
		"boolean": {`true`: true, `1`: nil, `1.5`: nil, `"true"`: nil},
		"string":  {`"a"`: "a", `3`: "3", `3.5`: "3.5", `true`: "true", `{"a":[1]}`: `{"a":[1]}`},
		"date":    {`"soon"`: "<invalid>", `""`: "<unknown>", `3`: nil},
	} {
		text := strings.Replace(withColumn(".spec.v"), "type: string", "type: "+columnType, 1)
		all, err := crd.Parse(strings.NewReader(strings.Replace(text, "{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", 1)))
		require.NoError(t, err)
		s, err := registry.New(all[0].Config())
		require.NoError(t, err)
		for value, want := range cells {
			it, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"generateName":"a"},"spec":{"v":`+value+`}}`), registry.WriteOptions{})
			require.NoError(t, err)
			require.Equal(t, []any{want}, it.AppendCells(nil), "%s of the type %s", value, columnType)
		}
		require.NoError(t, s.Close())
	}
}

// withColumn is plain with a column of a path.
func withColumn(path string) string {
	columns := "additionalPrinterColumns: [{name: X, type: string, jsonPath: " + strconv.Quote(path) + "}]"
	return strings.Replace(plain, "storage: true,", "storage: true, "+columns+",", 1)
}

func TestPath_FindsWhatItNames(t *testing.T) {
	const body = `{"metadata":{"name":"a"},"spec":{"a":{"b":"nested"},"a.b":"dotted","n":0,"items":["zeroth","first"],"rules":[{"port":80},{"host":"h","tls":true},{"host":"i"},{"port":9007199254740992}],"map":{"y":2,"x":1},
		"conditions":[{"type":"Other","status":"no"},{"type":"Ready","status":"yes"},{"type":"Ready","status":"late"}]}}`
	for path, want := range map[string]any{
		".spec.a.b": "nested", "$.spec.a.b": "nested", "{.spec.a.b}": "nested", `.spec.a\.b`: "dotted", ".spec['a.b']": "dotted", `.spec["a.b"]`: "dotted",
		".spec.items[0]": "zeroth", ".spec.items[1]": "first", ".spec.items[2]": nil, ".spec.a[0]": nil, ".spec.items.a": nil, ".spec.none.a": nil, ".spec.n": "0",
		`.spec.conditions[?(@.type=="Ready")].status`: "yes", `.spec.conditions[?(@.type == 'Other')].status`: "no",
		`.spec.conditions[?(@.type=="]")].status`: nil, `.spec.a[?(@.type=="Ready")]`: nil,
		`.spec.conditions[?(@['type']=="Ready")].status`: "yes", `.spec.conditions[?(@["type"] != 'Other')].status`: "yes", `.spec.conditions[?(@['a==b']=="]")].status`: nil,
		".spec.items[-1:]": "first", ".spec.items[:1]": "zeroth", ".spec.items[1:2]": "first", ".spec.items[-2:-1]": "zeroth", ".spec.items[:]": "zeroth", ".spec.conditions[1:3:2].status": "yes",
		".spec.items[-3:]": nil, ".spec.items[0:3]": nil, ".spec.items[1:1]": nil, ".spec.items[2:]": nil, ".spec.a[0:1]": nil, ".spec.items[1::9223372036854775807]": "first",
		".spec.items[-1]": "first", ".spec.items[-3]": nil, ".spec.items[*]": "zeroth", ".spec.rules[*].host": "h", ".spec.map.*": "1", ".spec.n[*]": nil,
		`.spec.rules[?(@.port==80)].port`: "80", `.spec.rules[?(@.port==8e1)].port`: "80", ".spec.rules[?(@.port==9007199254740993)].port": nil, ".spec.rules[?(@.port==9007199254740992)].port": "9007199254740992", `.spec.rules[?(@.tls==true)].host`: "h", `.spec.rules[?(@.tls==false)].host`: nil,
		`.spec.rules[?(@.host)].host`: "h", `.spec.rules[?(@.host!="h")].host`: "i", `.spec.rules[?(@.host==1)].host`: nil,
		`.spec.rules[?(@.host!="h")].port`: nil,
	} {
		all, err := crd.Parse(strings.NewReader(strings.Replace(withColumn(path), "{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", 1)))
		require.NoError(t, err, path)
		s, err := registry.New(all[0].Config())
		require.NoError(t, err)
		it, err := s.Resources()[0].Create(t.Context(), "default", []byte(body), registry.WriteOptions{})
		require.NoError(t, err, path)
		require.Equal(t, []any{want}, it.AppendCells(nil), path)
		require.NoError(t, s.Close())
	}
}

func TestPath_MustBeginWithADot(t *testing.T) {
	for _, path := range []string{"", "spec"} {
		_, err := crd.Parse(strings.NewReader(withColumn(path)))
		require.ErrorIs(t, err, crd.ErrManifest, path)
		require.ErrorContains(t, err, `the jsonPath of the column "X"`, path)
	}
}

// Kubernetes takes any text that begins with a dot, so manifests have some. The kind is served
// without such a column.
func TestPath_ThatIsNotUnderstoodIsNoted(t *testing.T) {
	for _, path := range []string{
		".", ".a.", ".a..b", ".a[", ".a[]", ".a['b", ".a[']", ".a['']", `.a['b"]`, ".a[b]", ".a[0:1:2:3]", ".a[0:b]", ".a[0:1:0]", ".a[0", ".a[0]b",
		`.a[?(.b=="c")]`, ".a[?(@.b==c)]", ".a[?(@.b)", ".a[?(@.b]", ".a[?(@.b==)]", ".a[?()]", `.a[?(@.b>"c")]`, ".a[?(@.b && @.c)]", ".a[?(@.b=~/c/)]", `.a[?(@b=="c")]`, `.a[?(@.b=="c)]`,
	} {
		all, err := crd.Parse(strings.NewReader(withColumn(path)))
		require.NoError(t, err, path)
		require.Len(t, all[0].Notes, 1, path)
		require.Contains(t, all[0].Notes[0], "the column X of version v1 is not shown: its jsonPath "+strconv.Quote(path)+" is not understood")
		require.Empty(t, all[0].Config().Columns, path)
	}
}

// Each condition in another one takes another look at the path: of a large file that would take hours.
func TestPath_ThatIsLongIsNoted(t *testing.T) {
	deep := func(conditions int) string {
		return ".a" + strings.Repeat("[?(@", conditions) + ".b" + strings.Repeat(")]", conditions)
	}
	all, err := crd.Parse(strings.NewReader(withColumn(deep(100))))
	require.NoError(t, err)
	require.Empty(t, all[0].Notes)
	all, err = crd.Parse(strings.NewReader(withColumn(deep(1000))))
	require.NoError(t, err)
	require.Len(t, all[0].Notes, 1)
	require.Contains(t, all[0].Notes[0], "in at most 1024 bytes")
	require.Empty(t, all[0].Config().Columns)
}

// What is no time of an event is shown as Kubernetes shows it.
func TestColumn_OfADate(t *testing.T) {
	for text, want := range map[string]any{`"0001-01-01T00:00:00Z"`: "<unknown>", `"null"`: "<unknown>", `""`: "<unknown>", `"today"`: "<invalid>", `1`: nil} {
		manifest := strings.Replace(withColumn(".spec.at"), "type: string", "type: date", 1)
		all, err := crd.Parse(strings.NewReader(strings.Replace(manifest, "{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", 1)))
		require.NoError(t, err)
		s, err := registry.New(all[0].Config())
		require.NoError(t, err)
		it, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"at":`+text+`}}`), registry.WriteOptions{})
		require.NoError(t, err)
		require.Equal(t, []any{want}, it.AppendCells(nil), text)
		require.NoError(t, s.Close())
	}
}

func TestSchema_FurtherPropertiesAreKeptIfTheyMayBe(t *testing.T) {
	for _, further := range []string{"true", "{type: integer}"} {
		s := storeOf(t, "{type: object, additionalProperties: "+further+"}")
		require.JSONEq(t, `{"more":1}`, kept(t, s, `{"more":1}`), further)
	}
	require.Equal(t, []string{"FieldValueInvalid spec"}, wrongFields(t, storeOf(t, "{type: object, additionalProperties: false}"), `{"more":1}`))
}

// kept returns the spec of a creation as it is stored.
func kept(t *testing.T, s *registry.Store[unstructured.Unstructured], spec string) string {
	t.Helper()
	it, err := s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"generateName":"a-"},"spec":`+spec+`}`), registry.WriteOptions{})
	require.NoError(t, err)
	o, err := s.Engine().Get(t.Context(), it.Key(), engine.GetOptions{})
	require.NoError(t, err)
	text, err := json.Marshal(o.Value.Object["spec"])
	require.NoError(t, err)
	return string(text)
}

// Kubernetes keeps such fields, and what their values are. Of the fields inside of them nothing is said.
func TestSchema_FurtherPropertiesOfNoSchemaHaveNoFields(t *testing.T) {
	s := storeOf(t, "{type: object, properties: {map: {type: object, additionalProperties: true}}}")
	require.JSONEq(t, `{"map":{"a":1,"b":null,"c":["d",{}],"e":{}}}`, kept(t, s, `{"map":{"a":1,"b":null,"c":["d",{"f":1}],"e":{"g":{"h":1}}}}`))
}

// A list may say of its items that they keep unknown fields. Known fields of the items obey their schemas.
func TestSchema_ItemsOfAListMayHaveUnknownFields(t *testing.T) {
	s := storeOf(t, "{type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {a: {type: object, properties: {b: {type: integer}}}}}}")
	require.JSONEq(t, `[{"a":{"b":1},"c":{"d":1}}]`, kept(t, s, `[{"a":{"b":1,"x":2},"c":{"d":1}}]`))
	s = storeOf(t, "{type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: array, items: {type: object}}}")
	require.JSONEq(t, `[[{"a":1}]]`, kept(t, s, `[[{"a":1}]]`))
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
