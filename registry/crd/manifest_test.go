package crd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/watchmill/watchmill/registry/crd"
)

func TestParse_SaysWhereAFileIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		plain + "  - {":                          "line 11: ",
		plain + "---\nkind: X\n  scope: [":       "the document after line 11: yaml: line 2: ",
		"spec: {scope: Cluster, scope: Cluster}": `key "scope" already set`,
		"- 1":                                    `the document is of the type array; give a mapping`,
		strings.Replace(plain, "served: true", "served: 1", 1):        `"things.example.com": spec.versions.served is of the type number; give true or false`,
		strings.Replace(plain, "group: example.com", "group: [a]", 1): `spec.group is of the type array; give a text`,
		"spec: {versions: 5}": `spec.versions is of the type number; give a list`,
		"spec: {versions: [{additionalPrinterColumns: [{priority: 0.5}]}]}": "spec.versions.additionalPrinterColumns.priority is of the type number 0.5; give a whole number",
	} {
		_, err := crd.Parse(strings.NewReader(text))
		require.ErrorIs(t, err, crd.ErrManifest, text)
		require.ErrorContains(t, err, want)
		require.LessOrEqual(t, strings.Count(err.Error(), "CustomResourceDefinition"), 1, err)
	}
}

// A second definition that is not read would be missing without a word.
func TestParse_ReadsAllOfAFileOrRefusesIt(t *testing.T) {
	second := strings.ReplaceAll(strings.ReplaceAll(plain, "things", "others"), "Thing", "Other")
	inJSON := func(document string) string {
		text, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err)
		return string(text) + "\n"
	}
	for _, text := range []string{
		plain + "---\n" + second, plain + "--- # the other one\n" + second, plain + "---\t\n\n---\n# nothing\n---\nnull\n---\n" + second + "---",
		strings.ReplaceAll(plain+"---\n"+second, "\n", "\r\n"), "\ufeff---\n" + plain + "...\n---\n" + second + "...\n# the end\n",
		"# of two\n%YAML 1.2\n---\n" + plain + "---\n%YAML 1.2\r\n%TAG ! tag:example.com:\n---\n" + second,
		"--- " + inJSON(plain) + "--- " + inJSON(second), inJSON(plain) + "---\n" + inJSON(second),
	} {
		definitions, err := crd.Parse(strings.NewReader(text))
		require.NoError(t, err, text)
		require.Len(t, definitions, 2, text)
		require.Equal(t, "others", definitions[1].Versions()[0].Kind.Plural)
	}
	for text, want := range map[string]string{
		inJSON(plain) + inJSON(second):  "there is more after the end of the document",
		plain + "...\n" + second:        "there is more after the end of the document",
		" " + plain:                     "there is more after the end of the document",
		"null\n...\n" + second:          "there is more after the end of the document",
		plain + "--- {kind: X}\n":       `kind is "X"`,
		plain + "---" + second:          `apiVersion ""`,
		plain + "--- 5\n---\n" + second: "the document after line 10: ",
		plain + "---\n{}\n{kind: X}\n":  "the document after line 11: there is more",
	} {
		_, err := crd.Parse(strings.NewReader(text))
		require.ErrorIs(t, err, crd.ErrManifest, text)
		require.ErrorContains(t, err, want)
	}
}

// As in a cluster, a field has another name in another case.
func TestParse_RegardsTheCaseOfFields(t *testing.T) {
	for mention, edit := range map[string][2]string{
		"spec.versions needs one that is served": {"served: true", "Served: true"}, `spec.scope is ""`: {"spec:", "Spec:"},
		"openAPIV3Schema is missing": {"openAPIV3Schema", "openapiV3Schema"},
	} {
		text := strings.Replace(plain, edit[0], edit[1], 1)
		require.NotEqual(t, plain, text)
		_, err := crd.Parse(strings.NewReader(text))
		require.ErrorIs(t, err, crd.ErrManifest)
		require.ErrorContains(t, err, mention)
	}
}

// A few hundred bytes that would be gigabytes with their aliases written out, and lists deep
// within each other: neither may be more work than a manifest.
func TestParse_BoundsWhatASmallFileTakes(t *testing.T) {
	aliases := "a0: &a0 [x]\n"
	for i := range 12 {
		before, name := string(rune('a'+i)), string(rune('b'+i))
		aliases += name + "0: &" + name + "0 [" + strings.Repeat("*"+before+"0, ", 10) + "x]\n"
	}
	for _, text := range []string{aliases, "a: " + strings.Repeat("[", 200_000), "a: " + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000)} {
		_, err := crd.Parse(strings.NewReader(text))
		require.ErrorIs(t, err, crd.ErrManifest)
	}
	_, err := crd.Parse(strings.NewReader(plain + strings.Repeat("# and more\n", 1<<20)))
	require.ErrorIs(t, err, crd.ErrManifest)
	require.ErrorContains(t, err, "larger than", "the part that is not read may be another definition")
}

// Whatever a file has instead of a manifest, the error is short, and has nothing in it that a
// terminal obeys.
func TestParse_RefusesDamagedFilesInAFewWords(t *testing.T) {
	good, err := os.ReadFile("testdata/widgets.yaml")
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		text := damaged(good, r)
		_, err := crd.Parse(bytes.NewReader(text))
		if err == nil {
			continue
		}
		require.ErrorIs(t, err, crd.ErrManifest, "%q", text)
		require.Less(t, len(err.Error()), 1000, "%q", text)
		require.NotContains(t, strings.Map(controls, err.Error()), "!", "%q", err)
	}
}

// A text of a manifest may be as large as the file, which an error must not repeat.
func TestParse_ErrorsShowTheBeginningOfLongTexts(t *testing.T) {
	const long = "LONG"
	inVersion := func(edit string) string {
		return strings.Replace(plain, "schema: {openAPIV3Schema: {type: object}}", edit+", schema: {openAPIV3Schema: {type: object}}", 1)
	}
	inSchema := func(object string) string { return strings.Replace(plain, "{type: object}", object, 1) }
	for _, text := range []string{
		strings.Replace(plain, "apiextensions.k8s.io/v1", long, 1), strings.Replace(plain, "CustomResourceDefinition", long, 1),
		strings.Replace(plain, "things.example.com", long, 1), strings.Replace(plain, "group: example.com", "group: "+long, 1),
		strings.Replace(plain, "Namespaced", long, 1), strings.Replace(plain, "kind: Thing", "kind: "+long, 1),
		strings.Replace(plain, "plural: things", "plural: "+long, 1), strings.Replace(plain, "name: v1", "name: "+long, 1),
		strings.Replace(plain, "kind: Thing", "kind: Thing, shortNames: ["+long+"]", 1),
		inVersion("additionalPrinterColumns: [{name: A, type: " + long + "}]"), inVersion("additionalPrinterColumns: [{name: A, type: string, jsonPath: " + long + "}]"),
		inVersion("additionalPrinterColumns: [{name: " + long + ", type: string}]"),
		inVersion("selectableFields: [{jsonPath: " + long + "}]"), inVersion("selectableFields: [{jsonPath: .metadata." + long + "}]"),
		inVersion("subresources: {scale: {specReplicasPath: " + long + "}}"), inVersion("additionalPrinterColumns: [{priority: 0.1" + long + "}]"),
		inVersion("additionalPrinterColumns: [{priority: 1.DIGITS}]"),
		inSchema("{type: " + long + "}"), inSchema("{type: object, properties: {a: {type: string, pattern: '(" + long + "'}}}"),
		inSchema("{type: object, properties: {" + long + ": {}}}"), inSchema("{type: object, properties: {" + long + ": null}}"),
		inSchema("{type: object, properties: {a: {type: array, x-kubernetes-list-type: " + long + "}}}"),
		inSchema("{type: object, properties: {a: {type: integer, default: " + long + "}}}"), inSchema("{type: object, properties: {" + long + ": {type: integer, default: x}}}"),
		inSchema("{type: object, properties: {" + long + ": 5}}"), inSchema("{type: object, properties: {a: {" + long + ": 5, nullable: " + long + "}}}"),
		inSchema("{type: object, properties: {a: {type: string, enum: " + long + "}}}"),
		plain + long + ": 1\n" + long + ": 2\n", plain + "a: &" + long + "\n*" + long, plain + "a: *" + long, plain + "a: !!int " + long,
	} {
		large := strings.NewReplacer(long, strings.Repeat("long", 1<<14), "DIGITS", strings.Repeat("1", 1<<16)).Replace(text)
		_, err := crd.Parse(strings.NewReader(large))
		require.ErrorIs(t, err, crd.ErrManifest, text)
		require.Less(t, len(err.Error()), 1000, text)
	}
}

// Of a property that is nested deep, or below a long name, an error tells the beginning of the path, and the
// end with the property's own name.
func TestParse_ErrorsNameTheProperty(t *testing.T) {
	for name, depth := range map[string]int{strings.Repeat("long", 200): 1, "component": 60, strings.Repeat("ü", 100): 40} {
		for _, wrong := range []string{"null", "{}", "{type: strin}", "{type: integer, default: x}", "{type: array, items: {}}", "{type: object, additionalProperties: {}}"} {
			schema := "{type: object, properties: {wrong: " + wrong + "}}"
			for range depth {
				schema = "{type: object, properties: {" + name + ": " + schema + "}}"
			}
			_, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{type: object}", schema, 1)))
			require.ErrorContains(t, err, name[:8])
			require.Regexp(t, `\.wrong(\[\*\]|\.\*)? has `, err.Error(), "%s %d", wrong, depth)
			require.True(t, utf8.ValidString(err.Error()))
			require.Less(t, len(err.Error()), 1000)
		}
	}
}

// The path of each property in a schema has the names of those around it, of which one may be as large
// as the file.
func TestDefine_CostsLittleForLongNames(t *testing.T) {
	var properties strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&properties, `,"a%d":{"type":"integer","default":1}`, i)
	}
	o := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
		{"type":"object","properties":{"`+strings.Repeat("long", 1<<16)+`":{"type":"object","properties":{"b":{"type":"string"}`+properties.String()+`}}}}}}]}}`), &o.Object))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := crd.Define(o)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))
}

// The parser bounds how many aliases there are, and not how many bytes they are once they are written
// out: a file of 8 MiB would be terabytes.
func TestParse_RefusesAliasesThatMakeAFileLarge(t *testing.T) {
	_, err := crd.Parse(strings.NewReader(plain + "a: &a " + strings.Repeat("x", 100<<10) + "\nb: [" + strings.Repeat("*a, ", 100) + "]\n"))
	require.ErrorIs(t, err, crd.ErrManifest)
	require.ErrorContains(t, err, "its aliases make it larger than")
	_, err = crd.Parse(strings.NewReader(plain + "a: &a {b: c}\nd: *a\n"))
	require.NoError(t, err)
}

// controls maps control characters to exclamation marks, and others, but line breaks, to blanks.
func controls(r rune) rune {
	if unicode.IsControl(r) && r != '\n' {
		return '!'
	}
	return ' '
}

// damaged returns a copy of text that is cut off, has other bytes, or is something else.
func damaged(text []byte, r *rand.Rand) []byte {
	text = bytes.Clone(text)
	at := r.IntN(len(text))
	switch r.IntN(5) {
	case 0:
		return text[:at]
	case 1:
		for i := range text[at:min(len(text), at+1+r.IntN(8))] {
			text[at+i] = byte(r.Uint32())
		}
	case 2:
		copy(text[at:], text[r.IntN(len(text)):])
	case 3:
		clear(text[at:min(len(text), at+512)])
	case 4:
		for i := range text {
			text[i] = byte(r.Uint32())
		}
	}
	return text
}

func TestDefine_RefusesWhatIsNoDefinition(t *testing.T) {
	for _, text := range []string{`{}`, `{"spec":5}`, `{"apiVersion":"v1","kind":"ConfigMap"}`, `{"metadata":{"name":[]}}`} {
		o := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal([]byte(text), &o.Object))
		_, err := crd.Define(o)
		require.ErrorIs(t, err, crd.ErrManifest, text)
	}
}
