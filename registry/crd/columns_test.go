package crd_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
)

func TestColumns_ShowWhatTheirPathsFind(t *testing.T) {
	object, status, _ := newWidgets(t)
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
		".spec.a.b": "nested", "$.spec.a.b": "nested", "{.spec.a.b}": "nested", `.spec.a\.b`: "dotted", ".spec['a.b']": "dotted", `.spec["a.b"]`: "dotted", `.spec['a\.b']`: "dotted", `.spec["a\.b"]`: "dotted",
		".spec.items[0]": "zeroth", ".spec.items[1]": "first", ".spec.items[2]": nil, ".spec.items[]": "zeroth", ".spec.rules[].host": nil, ".spec.conditions[].status": "no", ".spec.a[]": nil, ".spec.a[0]": nil, ".spec.items.a": nil, ".spec.none.a": nil, ".spec.n": "0",
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
		".", ".a.", ".a..b", ".a[", ".a['b", ".a[']", ".a['']", `.a['b"]`, ".a[b]", ".a[0:1:2:3]", ".a[0:b]", ".a[0:1:0]", ".a[0", ".a[0]b",
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

// What is not a time of an event is shown as Kubernetes shows it.
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
