package tree_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
)

func TestTree_SingleKey(t *testing.T) {
	objects := storetest.TreeOf()
	first, second := storetest.OnNode("a", "n1", "", 1), storetest.OnNode("a", "n1", "", 2)
	require.Nil(t, objects.Get("a"))
	require.Nil(t, objects.Delete("a"))
	require.Nil(t, objects.Put(first))
	require.Same(t, first, objects.Get("a"))
	require.Same(t, first, objects.Put(second))
	require.Same(t, second, objects.Get("a"))
	require.Equal(t, 1, objects.Len())
	require.Same(t, second, objects.Delete("a"))
	require.Nil(t, objects.Get("a"))
	require.Zero(t, objects.Len())
}

func TestTree_IndexOfASingleKey(t *testing.T) {
	objects := storetest.TreeOf()
	steps := []struct {
		name   string
		change func()
		n1, n2 []string
	}{
		{"put", func() { objects.Put(storetest.OnNode("a", "n1", "", 1)) }, []string{"a"}, []string{}},
		{"put with the same value", func() { objects.Put(storetest.OnNode("a", "n1", "", 2)) }, []string{"a"}, []string{}},
		{"put with another value", func() { objects.Put(storetest.OnNode("a", "n2", "", 3)) }, []string{}, []string{"a"}},
		{"delete", func() { objects.Delete("a") }, []string{}, []string{}},
	}
	for _, step := range steps {
		step.change()
		require.Equal(t, step.n1, storetest.KeysBy(t, objects.View(), storetest.ByNode, "n1", "", ""), step.name)
		require.Equal(t, step.n2, storetest.KeysBy(t, objects.View(), storetest.ByNode, "n2", "", ""), step.name)
	}
}

func TestTree_IndexReturnsTheNewestObject(t *testing.T) {
	state := storetest.TreeOf()
	state.Put(storetest.OnNode("a", "n1", "", 1))
	newest := storetest.OnNode("a", "n1", "", 2)
	state.Put(newest)
	objects, err := state.View().ByIndex(storetest.ByNode, "n1", "", "")
	require.NoError(t, err)
	require.Same(t, newest, slices.Collect(objects)[0])
}

// A view shares all nodes, so the first write after it copies those that it changes: of an
// index none, unless the value is another.
func TestTree_AnUpdateThatKeepsTheValueCopiesNothingOfAnIndex(t *testing.T) {
	copied := func(value string, indexes ...store.Attribute) float64 {
		const runs = 10
		trees := make([]*tree.Tree, 0, runs+1) // one for the run before the measured ones
		for len(trees) < cap(trees) {
			objects := tree.New(indexes...)
			for i := range 1000 { // downwards, since a tree that was appended to compacts itself
				objects.Put(storetest.OnNode(fmt.Sprintf("%04d", 999-i), "n1", "", 1))
			}
			objects.View()
			trees = append(trees, objects)
		}
		update := storetest.OnNode("0500", value, "", 2)
		return testing.AllocsPerRun(runs, func() {
			trees[0].Put(update)
			trees = trees[1:]
		})
	}
	require.Equal(t, copied("n1"), copied("n1", storetest.ByNode))
	require.Greater(t, copied("n2", storetest.ByNode), copied("n2"))
}

func TestTree_ListsInKeyOrder(t *testing.T) {
	v := storetest.TreeOf("foo3", "bar/a", "foo1", "bar", "foo2").View()
	want := []string{"bar", "bar/a", "foo1", "foo2", "foo3"}
	require.Equal(t, want, storetest.Keys(v, "", ""))
	require.Equal(t, 5, v.Len())
}

// prefixCases are about keys where those that share a path prefix are not
// neighbours: "-" sorts before "/", "0" after it.
var prefixCases = []struct {
	prefix, after string
	want          []string
}{
	{"", "", []string{"a", "foo", "foo-x", "foo/", "foo/bar", "foo/bar/baz", "foo/z", "foo0", "g"}},
	{"foo", "", []string{"foo", "foo/", "foo/bar", "foo/bar/baz", "foo/z"}},
	{"foo/", "", []string{"foo/", "foo/bar", "foo/bar/baz", "foo/z"}},
	{"foo/bar", "", []string{"foo/bar", "foo/bar/baz"}},
	{"foo/b", "", []string{}},
	{"fo", "", []string{}},
	{"foo", "a", []string{"foo", "foo/", "foo/bar", "foo/bar/baz", "foo/z"}},
	{"foo", "foo", []string{"foo/", "foo/bar", "foo/bar/baz", "foo/z"}},
	{"foo", "foo-x", []string{"foo/", "foo/bar", "foo/bar/baz", "foo/z"}},
	{"foo", "foo/bar", []string{"foo/bar/baz", "foo/z"}},
	{"foo", "foo/bas", []string{"foo/z"}},
	{"foo", "foo0", []string{}},
	{"", "foo0", []string{"g"}},
	{"", "g", []string{}},
}

func TestTree_ListsAPrefix(t *testing.T) {
	v := storetest.TreeOf(prefixCases[0].want...).View()
	for _, c := range prefixCases {
		require.Equal(t, c.want, storetest.Keys(v, c.prefix, c.after), "under %q after %q", c.prefix, c.after)
		require.Equal(t, c.want, storetest.KeysBy(t, v, storetest.ByNode, "", c.prefix, c.after), "by index under %q after %q", c.prefix, c.after)
		for key := range slices.Values(c.want) {
			require.True(t, store.HasPrefix(key, c.prefix))
		}
	}
}

func TestTree_ViewsAreSnapshots(t *testing.T) {
	objects := storetest.TreeOf()
	var views []*tree.View
	for rev := range store.Revision(500) {
		views = append(views, objects.View())
		objects.Put(storetest.OnNode(rev.String(), "n1", "", rev+1))
	}
	for n, v := range views {
		require.Equal(t, n, v.Len())
		require.Len(t, storetest.Keys(v, "", ""), n)
		require.Len(t, storetest.KeysBy(t, v, storetest.ByNode, "n1", "", ""), n)
	}
}

// Objects of a value are found whether few or most objects have it, and where that changes.
func TestTree_IndexFindsObjectsCloseTogetherAndFarApart(t *testing.T) {
	gaps := map[string]func(i int) int{
		"all":              func(int) int { return 1 },
		"a third":          func(int) int { return 3 },
		"as many as steps": func(int) int { return 8 },
		"one more":         func(int) int { return 9 },
		"few":              func(int) int { return 70 },
		"first most":       func(i int) int { return 1 + i/20 },
		"last most":        func(i int) int { return max(1, 40-i) },
	}
	for name, gap := range gaps {
		state, want := storetest.TreeOf(), []string{}
		for i, next := 0, 0; i < 2000; i++ {
			key, node := fmt.Sprintf("%04d", i), "n2"
			if i == next {
				node, next = "n1", next+gap(len(want))
				want = append(want, key)
			}
			state.Put(storetest.OnNode(key, node, "", 1))
		}
		v := state.View()
		require.Equal(t, want, storetest.KeysBy(t, v, storetest.ByNode, "n1", "", ""), name)
		half := len(want) / 2
		require.Equal(t, want[half+1:], storetest.KeysBy(t, v, storetest.ByNode, "n1", "", want[half]), name)
		objects, err := v.ByIndex(storetest.ByNode, "n1", "", "")
		require.NoError(t, err)
		for o := range objects {
			require.Same(t, v.Get(o.Key), o, name)
		}
	}
}

// An index beside the snapshots would show what they do not have.
func TestTree_IndexIsInsideTheSnapshot(t *testing.T) {
	objects := storetest.TreeOf()
	objects.Put(storetest.OnNode("a", "n1", "web", 1))
	before := objects.View()
	objects.Put(storetest.OnNode("a", "n2", "db", 2))
	objects.Put(storetest.OnNode("b", "n1", "web", 3))
	require.Equal(t, []string{"a"}, storetest.KeysBy(t, before, storetest.ByNode, "n1", "", ""))
	require.Equal(t, []string{}, storetest.KeysBy(t, before, storetest.ByNode, "n2", "", ""))
	require.Equal(t, []string{"a"}, storetest.KeysBy(t, before, storetest.ByApp, "web", "", ""))
	require.Equal(t, []string{"b"}, storetest.KeysBy(t, objects.View(), storetest.ByApp, "web", "", ""))
}

// A sequence can be broken off and read again from its start.
func TestView_SequencesAreReadAgain(t *testing.T) {
	v := storetest.TreeOf("a/1", "b", "b/1", "b/2", "c/1").View()
	page := v.All("b", "")
	for range 2 {
		var read []string
		for o := range page {
			read = append(read, o.Key)
			if len(read) == 2 {
				break
			}
		}
		require.Equal(t, []string{"b", "b/1"}, read)
	}
}

func TestView_AppendToIsInKeyOrder(t *testing.T) {
	v := storetest.TreeOf("c", "a/2", "b", "a/1", "a").View()
	first := &store.Object{Key: "first"}
	for prefix, want := range map[string][]string{
		"":   {"first", "a", "a/1", "a/2", "b", "c"},
		"a":  {"first", "a", "a/1", "a/2"},
		"a/": {"first", "a/1", "a/2"},
		"x":  {"first"},
	} {
		var got []string
		for _, o := range v.AppendTo([]*store.Object{first}, prefix) {
			got = append(got, o.Key)
		}
		require.Equal(t, want, got, "under %q", prefix)
	}
}

func TestView_Empty(t *testing.T) {
	var noTree *tree.Tree
	require.Nil(t, noTree.View())
	for name, v := range map[string]*tree.View{"nil": nil, "of an empty tree": storetest.TreeOf().View()} {
		require.Zero(t, v.Len(), name)
		require.Nil(t, v.Get("a"), name)
		require.Empty(t, storetest.Keys(v, "", ""), name)
		require.Empty(t, v.AppendTo(nil, ""), name)
		objects := tree.From(v)
		objects.Put(storetest.OnNode("a", "n1", "", 1))
		require.Equal(t, 1, objects.Len(), name)
		require.Zero(t, v.Len(), name)
	}
}

func TestTree_RefusesAnUnknownIndex(t *testing.T) {
	for _, v := range []*tree.View{nil, storetest.TreeOf().View()} {
		_, err := v.ByIndex(store.LabelAttribute("tier"), "x", "", "")
		require.ErrorIs(t, err, store.ErrUnknownIndex)
		require.ErrorContains(t, err, "label:tier")
		require.False(t, v.Indexed(store.LabelAttribute("tier")))
	}
	v := storetest.TreeOf().View()
	require.True(t, v.Indexed(storetest.ByNode))
	require.False(t, v.Indexed(store.LabelAttribute(storetest.ByNode.Name)), "a label is not the field of that name")
	require.True(t, tree.From(v).View().Indexed(storetest.ByNode), "a tree from a view keeps the indexes")
}

// Selectors take a field that is not set for "", but not a label.
func TestTree_IndexOfWhatIsNotSet(t *testing.T) {
	objects := storetest.TreeOf("bare")
	empty := storetest.OnNode("empty", "", "", 2)
	empty.Labels = store.LabelsOf(labels.Set{storetest.ByApp.Name: ""})
	objects.Put(empty)
	require.Equal(t, []string{"bare", "empty"}, storetest.KeysBy(t, objects.View(), storetest.ByNode, "", "", ""))
	require.Equal(t, []string{"empty"}, storetest.KeysBy(t, objects.View(), storetest.ByApp, "", "", ""))

	objects.Put(storetest.OnNode("empty", "n1", "", 3)) // loses the label
	require.Empty(t, storetest.KeysBy(t, objects.View(), storetest.ByApp, "", "", ""))
}

func TestTree_IndexNamedTwiceIsOne(t *testing.T) {
	objects := tree.New(storetest.ByApp, storetest.ByNode, storetest.ByApp)
	objects.Put(storetest.OnNode("a", "n1", "web", 1))
	require.Equal(t, []string{"a"}, storetest.KeysBy(t, objects.View(), storetest.ByApp, "web", "", ""))
	objects.Delete("a")
	require.Empty(t, storetest.KeysBy(t, objects.View(), storetest.ByApp, "web", "", ""))
}

func TestView_IsTakenOnceUntilTheNextWrite(t *testing.T) {
	objects := storetest.TreeOf("a")
	v := objects.View()
	require.Same(t, v, objects.View())
	objects.Delete("nothing")
	require.Same(t, v, objects.View(), "nothing was deleted, nothing changed")
	objects.Put(storetest.OnNode("b", "", "", 2))
	require.NotSame(t, v, objects.View())
}
