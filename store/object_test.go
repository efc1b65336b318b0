package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// An update that leaves labels and fields alone takes up the sets of the state
// before it, so a history of such updates holds them once.
func ExampleShareAttributes() {
	before := &store.Object{Key: "a", Labels: store.LabelsOf(labels.Set{"app": "web"}), Fields: []string{"n1"}}
	update := &store.Object{Key: "a", Labels: store.LabelsOf(labels.Set{"app": "web"}), Fields: []string{"n1"}}
	fmt.Println(store.SharesAttributes(update, before))
	store.ShareAttributes(update, before)
	fmt.Println(store.SharesAttributes(update, before))
	// Output:
	// false
	// true
}

func TestShareAttributes_SharesEqualSetsAlone(t *testing.T) {
	before := &store.Object{Labels: store.LabelsOf(labels.Set{"app": "web"}), Fields: []string{"n1"}}
	for name, c := range map[string]struct {
		after store.Object
		same  bool
	}{
		"equal":         {store.Object{Labels: store.LabelsOf(labels.Set{"app": "web"}), Fields: []string{"n1"}}, true},
		"other labels":  {store.Object{Labels: store.LabelsOf(labels.Set{"app": "db"}), Fields: []string{"n1"}}, false},
		"other fields":  {store.Object{Labels: store.LabelsOf(labels.Set{"app": "web"}), Fields: []string{"n2"}}, false},
		"one more":      {store.Object{Labels: store.LabelsOf(labels.Set{"app": "web", "tier": ""}), Fields: []string{"n1"}}, false},
		"without":       {store.Object{}, false},
		"without field": {store.Object{Labels: store.LabelsOf(labels.Set{"app": "web"})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			shared := c.after
			store.ShareAttributes(&shared, before)
			require.Equal(t, c.after, shared, "to share changes nothing that can be seen")
			require.Equal(t, c.same, store.SharesAttributes(&shared, before))
		})
	}

	created := store.Object{Labels: store.LabelsOf(labels.Set{"app": "web"})}
	store.ShareAttributes(&created, nil)
	require.Equal(t, labels.Set{"app": "web"}, created.Labels.Set())
}

func TestNotFoundError_SaysWhatWasLookedFor(t *testing.T) {
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
func TestShareAttributes_LeavesIndexesRight(t *testing.T) {
	node := store.Attribute{Kind: store.Field, Name: "node"}
	state := tree.New(node, store.LabelAttribute("app"))
	on := func(name string, prev *store.Object) *store.Object {
		o := &store.Object{Key: "a", Fields: []string{name}}
		store.ShareAttributes(o, prev)
		state.Put(o)
		return o
	}
	found := func(name string) (all []*store.Object) {
		objects, err := state.View().ByIndex(node, name, "", "")
		require.NoError(t, err)
		for o := range objects {
			all = append(all, o)
		}
		return all
	}
	first := on("n1", nil)
	second := on("n1", first)
	require.True(t, store.SharesAttributes(second, first))
	require.Equal(t, []*store.Object{second}, found("n1"))
	require.Same(t, second, found("n1")[0], "the newest, not the one before")
	third := on("n2", second)
	require.Empty(t, found("n1"))
	require.Same(t, third, found("n2")[0])
}

func ExampleAlike() {
	before := &store.Object{Key: "a", Labels: store.LabelsOf(labels.Set{"app": "web"})}
	update := &store.Object{Key: "a", Labels: store.LabelsOf(labels.Set{"app": "web"})}
	store.ShareAttributes(update, before)
	other := &store.Object{Key: "b", Labels: before.Labels}
	fmt.Println(store.Alike(before, update), store.Alike(before, other), store.Alike(nil, update))
	// Output: true false false
}
