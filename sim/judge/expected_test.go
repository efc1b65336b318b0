package judge_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// A watch sees each change of what its selection matches before or after, whatever it selects by.
func TestExpect_HasEachChangeOfWhatASelectionMatches(t *testing.T) {
	var l judge.Ledger
	_, some := l.Newest()
	require.False(t, some)
	for _, e := range []judge.Entry{
		{Revision: 2, Key: "a/1", Labels: labels.Set{"app": "web"}, Fields: fields.Set{"node": "x", "zone": "z"}},
		{Revision: 3, Key: "a/2", Labels: labels.Set{"app": "db"}, Fields: fields.Set{"node": "y", "zone": "z"}},
		{Revision: 4, Key: "a/1", Labels: labels.Set{"app": "web"}, Fields: fields.Set{"node": "y"}},
		{Revision: 5, Key: "b/1", Labels: labels.Set{"app": "web"}, Fields: fields.Set{"node": "x"}},
		{Revision: 6, Key: "a/2", Emitted: true, Labels: labels.Set{"app": "db"}, Fields: fields.Set{"node": "x"}},
		{Revision: 7, Key: "a/1", Deleted: true},
		{Revision: 8, Key: "a/1", Labels: labels.Set{"app": "db"}, Fields: fields.Set{"node": "x"}},
		{Revision: 9, Key: "a/2", Labels: labels.Set{"app": "web"}, Fields: fields.Set{"node": "y"}},
	} {
		l.Note(e)
	}
	newest, some := l.Newest()
	require.True(t, some)
	require.Equal(t, store.Revision(9), newest.Revision)
	want := map[judge.Selection][]store.Revision{
		{}:                                 {2, 3, 4, 5, 6, 7, 8, 9},
		{Key: "a/1"}:                       {2, 4, 7, 8},
		{Key: "a/1", Fields: "node=x"}:     {2, 4, 8},
		{Key: "none"}:                      nil,
		{Prefix: "a"}:                      {2, 3, 4, 6, 7, 8, 9},
		{Labels: "app=web"}:                {2, 4, 5, 7, 9},
		{Fields: "node=x"}:                 {2, 4, 5, 6, 8},
		{Fields: "node=y"}:                 {3, 4, 7, 9},
		{Fields: "zone=z"}:                 {2, 3, 4, 9},
		{Fields: "node!=x"}:                {3, 4, 7, 9},
		{Fields: "node=x,zone=z"}:          {2, 4},
		{Fields: "node=y", Labels: "app"}:  {3, 4, 7, 9},
		{Labels: "app=db", Prefix: "a"}:    {3, 6, 8, 9},
		{Labels: "app!=db", Prefix: "b/1"}: {5},
	}
	twice := slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(want))) // as of several watches
	x := judge.Expect(slices.Values(twice), &l)
	for sel, revisions := range want {
		require.Equal(t, revisions, x.Revisions(sel), "%+v", sel)
	}
}
