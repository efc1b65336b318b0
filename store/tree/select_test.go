package tree_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
)

func selected(v *tree.View, f *store.Filter, after string) []string {
	found := []string{}
	for o := range tree.Select(v, f, after) {
		found = append(found, o.Key)
	}
	return found
}

// podsOnNodes is a tree of six objects on two nodes, by app and namespace.
func podsOnNodes() *tree.View {
	objects := storetest.TreeOf()
	for i, key := range []string{"a/1", "a/2", "a/3", "b/1", "b/2", "b/3"} {
		objects.Put(storetest.OnNode(key, fmt.Sprint("n", i%2), []string{"web", "db", ""}[i%3], store.Revision(i+1)))
	}
	return objects.View()
}

func TestSelect_ReadsWhatTheFilterWants(t *testing.T) {
	v := podsOnNodes()
	for name, c := range map[string]struct {
		opts  store.FilterOptions
		after string
		want  []string
	}{
		"everything":             {want: []string{"a/1", "a/2", "a/3", "b/1", "b/2", "b/3"}},
		"after":                  {after: "a/3", want: []string{"b/1", "b/2", "b/3"}},
		"key":                    {opts: store.FilterOptions{Key: "a/2"}, want: []string{"a/2"}},
		"key that is behind":     {opts: store.FilterOptions{Key: "a/2"}, after: "a/2", want: []string{}},
		"key of another label":   {opts: store.FilterOptions{Key: "a/2", Labels: "app=web"}, want: []string{}},
		"prefix":                 {opts: store.FilterOptions{Prefix: "b"}, want: []string{"b/1", "b/2", "b/3"}},
		"index":                  {opts: store.FilterOptions{Fields: "spec.nodeName=n1"}, want: []string{"a/2", "b/1", "b/3"}},
		"index, prefix, after":   {opts: store.FilterOptions{Fields: "spec.nodeName=n1", Prefix: "b"}, after: "b/1", want: []string{"b/3"}},
		"index and another term": {opts: store.FilterOptions{Fields: "spec.nodeName=n1", Labels: "app"}, want: []string{"a/2", "b/1"}},
		"two indexes":            {opts: store.FilterOptions{Fields: "spec.nodeName=n0", Labels: "app=web"}, want: []string{"a/1"}},
		"no index":               {opts: store.FilterOptions{Labels: "app!=web"}, want: []string{"a/2", "a/3", "b/2", "b/3"}},
		"parsed labels":          {opts: store.FilterOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"app": "db"})}, want: []string{"a/2", "b/2"}},
		"parsed fields":          {opts: store.FilterOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "n0")}, want: []string{"a/1", "a/3", "b/2"}},
		"no labels":              {opts: store.FilterOptions{LabelSelector: labels.Nothing()}, want: []string{}},
		"no fields":              {opts: store.FilterOptions{FieldSelector: fields.Nothing()}, want: []string{}},
		"contradiction":          {opts: store.FilterOptions{Labels: "app=web,app=db"}, want: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := store.NewFilter(storetest.Columns, c.opts)
			require.NoError(t, err)
			require.Equal(t, c.want, selected(v, f, c.after))
		})
	}
}

func TestWithValue_FindsWhatAnIndexWould(t *testing.T) {
	v := podsOnNodes()
	for _, a := range []store.Attribute{storetest.ByNode, storetest.ByApp} {
		for _, value := range []string{"n0", "web", ""} {
			var found []string
			for o := range tree.WithValue(v.All("", ""), a, value) {
				found = append(found, o.Key)
			}
			require.ElementsMatch(t, storetest.KeysBy(t, v, a, value, "", ""), found, "%v=%q", a, value)
		}
	}
}

func ExampleSelect() {
	objects := tree.New()
	for _, key := range []string{"shop/web", "shop/db", "mail/web"} {
		objects.Put(&store.Object{Key: key, Labels: store.LabelsOf(labels.Set{"part": key[5:]})})
	}
	web, err := store.NewFilter(nil, store.FilterOptions{Labels: "part=web"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for o := range tree.Select(objects.View(), web, "") {
		fmt.Println(o.Key)
	}
	fmt.Println(len(slices.Collect(tree.Select(objects.View(), nil, "mail/web"))), "behind mail/web")
	// Output:
	// mail/web
	// shop/web
	// 2 behind mail/web
}

func ExampleCandidatesOf() {
	objects := tree.New(store.LabelAttribute("part"))
	for _, key := range []string{"shop/web", "shop/db", "mail/web"} {
		objects.Put(&store.Object{Key: key, Labels: store.LabelsOf(labels.Set{"part": key[5:]})})
	}
	for _, selector := range []string{"part=web", "part=web,old", "old"} {
		f, err := store.NewFilter(nil, store.FilterOptions{Labels: selector})
		if err != nil {
			panic(err)
		}
		read := 0
		c := tree.CandidatesOf(objects.View(), f, "")
		for range c.Objects {
			read++
		}
		fmt.Printf("%s: %d objects, index %q, all match: %v\n", selector, read, c.Index.Name, c.Match)
	}
	// Output:
	// part=web: 2 objects, index "part", all match: true
	// part=web,old: 2 objects, index "part", all match: false
	// old: 3 objects, index "", all match: false
}
