package storetest

import (
	"strings"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// ByNode and ByApp are what the trees have indexes on.
var (
	ByNode = fieldOf("spec.nodeName")
	ByApp  = store.LabelAttribute("app")
)

// OnNode returns an object with a value for ByNode, and for ByApp unless app is
// empty.
func OnNode(key, node, app string, rev store.Revision) *store.Object {
	o := NewThing(store.Object{Key: key, Revision: rev, Created: rev, Fields: Row(fields.Set{ByNode.Name: node})})
	if app != "" {
		o.Labels = store.LabelsOf(labels.Set{ByApp.Name: app})
	}
	return o
}

// TreeOf returns a tree of objects with these keys and no attributes.
func TreeOf(keys ...string) *tree.Tree {
	objects := tree.New(ByNode, ByApp)
	for i, key := range keys {
		objects.Put(NewThing(store.Object{Key: key, Revision: store.Revision(i + 1)}))
	}
	return objects
}

// Keys returns the keys under prefix after a key, in the view's order.
func Keys(v *tree.View, prefix, after string) []string {
	found := []string{}
	for o := range v.All(prefix, after) {
		found = append(found, o.Key)
	}
	return found
}

// KeysBy is Keys by index.
func KeysBy(t require.TestingT, v *tree.View, a store.Attribute, value, prefix, after string) []string {
	objects, err := v.ByIndex(a, value, prefix, after)
	require.NoError(t, err)
	found := []string{}
	for o := range objects {
		found = append(found, o.Key)
	}
	return found
}

// KeysAndRevisions returns a state as text, "a@1 b@2".
func KeysAndRevisions(v *tree.View) string {
	var words []string
	for o := range v.All("", "") {
		words = append(words, o.Key+"@"+o.Revision.String())
	}
	return strings.Join(words, " ")
}

// fieldOf returns the attribute of a declared field.
func fieldOf(name string) store.Attribute {
	a, err := Columns.Attribute(name)
	if err != nil {
		panic(err)
	}
	return a
}
