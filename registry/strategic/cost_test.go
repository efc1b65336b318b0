package strategic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/strategic"
)

// Gearbox has lists in the items of a list.
type Gearbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Gears             []NamedGear `json:"gears" patchMergeKey:"name" patchStrategy:"merge"`
	Main              NamedGear   `json:"main"`
}

type NamedGear struct {
	Name  string   `json:"name"`
	Teeth []Tooth  `json:"teeth,omitempty" patchMergeKey:"name" patchStrategy:"merge"`
	Tags  []string `json:"tags,omitempty" patchStrategy:"merge"`
}

// applying returns the application of patches to objects of a Go type.
func applying(t *testing.T, of any) func(patch, object string) error {
	t.Helper()
	merge, err := strategic.New(of)
	require.NoError(t, err)
	info := &registry.Info{StrategicMerge: merge}
	return func(patch, object string) error {
		p, err := info.ParsePatch(registry.StrategicPatch, []byte(patch))
		require.NoError(t, err)
		_, err = p.Apply([]byte(object))
		return err
	}
}

// list returns n items of that format, without the brackets.
func list(format string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, n-i)
	}
	return strings.Join(all, ",")
}

func requireTooMany(t *testing.T, err error, of string) {
	t.Helper()
	require.ErrorAs(t, err, new(*registry.PatchError), "%.60s", of)
	require.ErrorContains(t, err, "one list with 5,000 items", "%.60s", of)
}

// The library takes minutes for lists for which a body has room.
func TestMerge_OfLongListsIsRefused(t *testing.T) {
	apply := applying(t, new(Gear))
	const many = 5001
	teeth, tags := list(`{"name":"a%d"}`, many), list(`"a%d"`, many)
	for _, tc := range [][2]string{
		{`{"teeth":[` + teeth + `]}`, `{"teeth":[]}`}, {`{"teeth":[{"name":"b"}]}`, `{"teeth":[` + teeth + `]}`}, {`{"tags":[` + tags + `]}`, `{"tags":["b"]}`},
		{`{"teeth":[]}`, `{"teeth":[` + teeth + `]}`},
		{`{"$setElementOrder/tags":["b"]}`, `{"tags":[` + tags + `]}`}, {`{"$setElementOrder/order":["b"]}`, `{"order":[` + tags + `]}`},
		{`{"$setElementOrder/tags":[` + tags + `],"tags":[` + tags + `]}`, `{}`}, {`{"$setElementOrder/order":[` + tags + `]}`, `{"order":["b"]}`},
		{`{"$deleteFromPrimitiveList/teeth":[{"name":"b"}]}`, `{"teeth":[` + teeth + `]}`},
		{`{"$deleteFromPrimitiveList/teeth":[]}`, `{"teeth":[` + teeth + `]}`},
		{`{"teeth":[{"$patch":"replace"},` + teeth + `]}`, `{"teeth":[]}`},
		{`{"metadata":{"finalizers":["b"]}}`, `{"metadata":{"finalizers":[` + tags + `]}}`},
		{`{"tags":[` + list(`"a%d"`, 4000) + `],"teeth":[` + list(`{"name":"a%d"}`, 4000) + `]}`, `{"tags":[],"teeth":[]}`},
	} {
		requireTooMany(t, apply(tc[0], tc[1]), tc[0])
	}
}

func TestMerge_OfLongListsThatItDoesNotSortIsApplied(t *testing.T) {
	apply := applying(t, new(Gear))
	const many = 20_000
	teeth, tags := list(`{"name":"a%d"}`, many), list(`"a%d"`, many)
	for _, tc := range [][2]string{
		{`{"mass":2,"order":[` + tags + `],"teeth":null}`, `{"order":[` + tags + `],"teeth":[` + teeth + `]}`},
		{`{"teeth":[` + teeth + `],"tags":[` + tags + `]}`, `{}`},
		{`{"teeth":[{"$patch":"replace"},{"name":"b"}]}`, `{"teeth":[` + teeth + `]}`},
		{`{"$deleteFromPrimitiveList/tags":[` + tags + `]}`, `{"tags":[` + tags + `]}`},
		{`{"$setElementOrder/tags":[` + tags + `]}`, `{}`},
	} {
		require.NoError(t, apply(tc[0], tc[1]), "%.60s", tc[0])
	}
}

// kubectl sends with the items of a list their order.
func TestMerge_AnOrderIsNotCountedAsFurtherItems(t *testing.T) {
	apply := applying(t, new(Gear))
	teeth := list(`{"name":"a%d"}`, 1800)
	require.NoError(t, apply(`{"$setElementOrder/teeth":[`+teeth+`],"teeth":[`+teeth+`]}`, `{"teeth":[`+teeth+`]}`))
}

// Items of a patch with the same key are merged one after the other, each into a list that is longer.
func TestMerge_ListsInItemsAreCountedByTheItem(t *testing.T) {
	apply := applying(t, new(Gearbox))
	gears := func(name string, n int) string {
		return `{"gears":[` + list(`{"name":"`+name+`","tags":[`+list(`"%%[1]d.%d"`, 100)+`]}`, n) + `]}`
	}
	requireTooMany(t, apply(gears("a", 60), `{"gears":[]}`), "of the patch alone")
	requireTooMany(t, apply(gears("a", 60), `{"gears":[{"name":"a"}]}`), "an item without the list")
	requireTooMany(t, apply(gears("a", 60), gears("a%d", 60)), "an item with the list")
	require.NoError(t, apply(gears("a%d", 60), `{"gears":[]}`))
	require.NoError(t, apply(gears("a%d", 60), gears("a%d", 60)))

	long := `{"name":"a","tags":[` + list(`"a%d"`, 5001) + `]}`
	requireTooMany(t, apply(`{"gears":[{"name":"a","tags":["b"]}]}`, `{"gears":[{"name":"b"},`+long+`]}`), "one of the items")
	requireTooMany(t, apply(`{"main":{"tags":["b"]}}`, `{"main":`+long+`}`), "an object in the object")
	require.NoError(t, apply(`{"gears":[{"name":"b","tags":["b"]}],"main":`+long+`}`, `{"gears":[{"name":"b"},`+long+`]}`))
	require.NoError(t, apply(`{"gears":[{"$patch":"replace"},`+long+`]}`, `{"gears":[`+long+`]}`))
	require.NoError(t, apply(`{"main":{"$patch":"replace","tags":[`+list(`"a%d"`, 3000)+`]}}`, `{"main":`+long+`}`), "in place of the object")
	require.NoError(t, apply(`{"main":{"$patch":"delete"}}`, `{"main":`+long+`}`))
	requireTooMany(t, apply(`{"gears":[`+list(`{"name":"a","$deleteFromPrimitiveList/tags":["b%d"]}`, 3000)+`]}`,
		`{"gears":[{"name":"a","tags":[`+list(`"a%d"`, 10_000)+`]}]}`), "each deletion reads the list")
	requireTooMany(t, apply(`{"gears":[{"name":"a","teeth":[{"name":"t"}]},{"name":"a","tags":["b"]},{"name":"a","teeth":[`+
		list(`{"name":"a%d"}`, 3000)+`]},{"name":"a","teeth":[`+list(`{"name":"b%d"}`, 3000)+`]}]}`, `{"gears":[]}`), "one after the other")
}
