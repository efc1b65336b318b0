package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

// An update that leaves labels and fields alone takes up the sets of the state
// before it, so a history of such updates holds them once.
func ExampleObject_ShareAttributes() {
	before := &store.Object[int]{Key: "a", Labels: labels.Set{"app": "web"}, Fields: fields.Set{"node": "n1"}}
	update := &store.Object[int]{Key: "a", Labels: labels.Set{"app": "web"}, Fields: fields.Set{"node": "n1"}}
	fmt.Println(update.SharesAttributes(before))
	update.ShareAttributes(before)
	fmt.Println(update.SharesAttributes(before))
	// Output:
	// false
	// true
}

func TestSharesEqualSetsAlone(t *testing.T) {
	before := &store.Object[int]{Labels: labels.Set{"app": "web"}, Fields: fields.Set{"node": "n1"}}
	for name, c := range map[string]struct {
		after store.Object[int]
		same  bool
	}{
		"equal":         {store.Object[int]{Labels: labels.Set{"app": "web"}, Fields: fields.Set{"node": "n1"}}, true},
		"other labels":  {store.Object[int]{Labels: labels.Set{"app": "db"}, Fields: fields.Set{"node": "n1"}}, false},
		"other fields":  {store.Object[int]{Labels: labels.Set{"app": "web"}, Fields: fields.Set{"node": "n2"}}, false},
		"one more":      {store.Object[int]{Labels: labels.Set{"app": "web", "tier": ""}, Fields: fields.Set{"node": "n1"}}, false},
		"without":       {store.Object[int]{}, false},
		"without field": {store.Object[int]{Labels: labels.Set{"app": "web"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			shared := c.after
			shared.ShareAttributes(before)
			require.Equal(t, c.after, shared, "to share changes nothing that can be seen")
			require.Equal(t, c.same, shared.SharesAttributes(before))
		})
	}

	created := store.Object[int]{Labels: labels.Set{"app": "web"}}
	created.ShareAttributes(nil)
	require.Equal(t, labels.Set{"app": "web"}, created.Labels)
}

func TestANotFoundErrorSaysWhatWasLookedFor(t *testing.T) {
	var err error = fmt.Errorf("update: %w", &store.NotFoundError{Key: "a/b", Expected: 7})
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NotErrorIs(t, err, store.ErrExists)
	require.EqualError(t, err, `update: "a/b" at revision 7: not found`)
	missing, ok := errors.AsType[*store.NotFoundError](err)
	require.True(t, ok)
	require.Equal(t, "a/b", missing.Key)
	require.EqualError(t, &store.NotFoundError{Key: "a/b"}, `"a/b": not found`)
}

// What is filed by an attribute stays filed, whether versions share their sets
// or not.
func TestAnIndexDoesNotMindSharedSets(t *testing.T) {
	tree := store.NewTree[int](store.FieldAttribute("node"), store.LabelAttribute("app"))
	on := func(node string, prev *store.Object[int]) *store.Object[int] {
		o := &store.Object[int]{Key: "a", Fields: fields.Set{"node": node}}
		o.ShareAttributes(prev)
		tree.Put(o)
		return o
	}
	found := func(node string) (all []*store.Object[int]) {
		objects, err := tree.View().ByIndex(store.FieldAttribute("node"), node, "", "")
		require.NoError(t, err)
		for o := range objects {
			all = append(all, o)
		}
		return all
	}
	first := on("n1", nil)
	second := on("n1", first)
	require.True(t, second.SharesAttributes(first))
	require.Equal(t, []*store.Object[int]{second}, found("n1"))
	require.Same(t, second, found("n1")[0], "the newest, not the one before")
	third := on("n2", second)
	require.Empty(t, found("n1"))
	require.Same(t, third, found("n2")[0])
}

func ExampleAlike() {
	before := &store.Object[int]{Key: "a", Value: 1, Labels: labels.Set{"app": "web"}}
	update := &store.Object[int]{Key: "a", Value: 2, Labels: labels.Set{"app": "web"}}
	update.ShareAttributes(before)
	other := &store.Object[int]{Key: "b", Labels: before.Labels}
	fmt.Println(store.Alike(before, update), store.Alike(before, other), store.Alike(nil, update))
	// Output: true false false
}
