package judge_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

// page returns a page of objects, each under its letter and of the revision beside it.
func page(at engine.Revision, keys string, revisions ...engine.Revision) *engine.List[string] {
	p := &engine.List[string]{Revision: at}
	for i, rev := range revisions {
		p.Items = append(p.Items, &engine.Object[string]{Key: keys[i : i+1], Revision: rev, Created: rev})
	}
	return p
}

func TestListing_JudgesItsPages(t *testing.T) {
	notOlder := judge.Read[string]{Name: "r", Mode: judge.ReadNotOlder, Oldest: 5}
	exact := judge.Read[string]{Name: "r", Mode: judge.ReadExact, Oldest: 5, Newest: 5}
	for name, c := range map[string]struct {
		list  judge.Listing[string]
		pages []*engine.List[string]
		want  string
	}{
		"whole":          {judge.Listing[string]{Read: notOlder, Limit: 2}, []*engine.List[string]{page(6, "ab", 6, 2), page(6, "c", 3)}, ""},
		"empty":          {judge.Listing[string]{Read: exact}, []*engine.List[string]{page(5, "")}, ""},
		"stale":          {judge.Listing[string]{Read: notOlder}, []*engine.List[string]{page(4, "")}, "read-not-older: r: it is of revision 4, not from 5 to the newest"},
		"another":        {judge.Listing[string]{Read: exact}, []*engine.List[string]{page(6, "")}, "read-exact: r: it is of revision 6, not from 5 to 5"},
		"two states":     {judge.Listing[string]{Read: notOlder}, []*engine.List[string]{page(5, "a", 2), page(6, "b", 3)}, "read-state: r: a page is of revision 6, the first was of 5"},
		"large":          {judge.Listing[string]{Read: notOlder, Limit: 1}, []*engine.List[string]{page(5, "ab", 2, 3)}, "read-state: r: a page has 2 objects, the most is 1"},
		"disorder":       {judge.Listing[string]{Read: exact}, []*engine.List[string]{page(5, "ba", 2, 3)}, `read-state: r: its keys are not in order: "a" follows "b"`},
		"twice":          {judge.Listing[string]{Read: exact}, []*engine.List[string]{page(5, "a", 2), page(5, "a", 2)}, `read-state: r: its keys are not in order: "a" follows "a"`},
		"from the times": {judge.Listing[string]{Read: exact}, []*engine.List[string]{page(5, "a", 6)}, `read-state: r: "a" of 6, created at 6 is in it, and it is of revision 5`},
	} {
		var err error
		for _, p := range c.pages {
			if err == nil {
				err = c.list.Page(p)
			}
		}
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.EqualError(t, err, c.want, name)
		}
	}
}

func TestListing_MustBeTheStateOfItsRevision(t *testing.T) {
	var l judge.Ledger
	for _, e := range []judge.Entry{
		{Revision: 2, Key: "a", Fields: fields.Set{"node": "n1"}}, {Revision: 3, Key: "b", Fields: fields.Set{"node": "n2"}},
		{Revision: 4, Key: "c", Fields: fields.Set{"node": "n1"}}, {Revision: 5, Key: "a", Deleted: true},
	} {
		l.Note(e)
	}
	everything, some := judge.Selection{}, judge.Selection{Fields: "node=n1"}
	expected := judge.Expect(slices.Values([]judge.Selection{everything, some}), &l)
	for _, c := range []struct {
		sel  judge.Selection
		page *engine.List[string]
		want string
	}{
		{everything, page(4, "abc", 2, 3, 4), ""},
		{everything, page(5, "bc", 3, 4), ""},
		{everything, page(1, ""), ""},
		{some, page(4, "ac", 2, 4), ""},
		{everything, page(4, "ab", 2, 3), "read-state: r: it has 2 objects as the state at revision 4, when there were 3 for it"},
		{everything, page(5, "abc", 2, 3, 4), "read-state: r: it has 3 objects as the state at revision 5, when there were 2 for it"},
		{some, page(4, "ab", 2, 3), "read-state: r: it has as many objects as the state at revision 4 as there were for it, but others"},
	} {
		list := judge.Listing[string]{Read: judge.Read[string]{Name: "r", Mode: judge.ReadLatest}}
		require.NoError(t, list.Page(c.page))
		if err := list.Judge(expected, c.sel); c.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.want)
		}
	}
}
