package crd_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

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
