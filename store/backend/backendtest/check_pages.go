package backendtest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

var pageChecks = []check{
	{"List_PagesAddUp", func(r *rig) {
		var all []*object
		for i := range 7 {
			all = append(all, r.create(fmt.Sprintf("p/%d", i), "x"))
		}
		r.create("q", "not under the prefix")
		at := r.revision()
		for limit := 1; limit <= len(all)+1; limit++ {
			got := r.pages(backend.ListOptions{Prefix: "p", Limit: limit}, at, len(all))
			require.Equal(r, describeAll(all), describeAll(got), "in pages of %d", limit)
		}
	}},
	{"List_PagesDoNotSeeLaterWrites", func(r *rig) {
		var all []*object
		for _, key := range []string{"a", "c", "e", "g"} {
			all = append(all, r.create(key, "x"))
		}
		first := r.lists(backend.ListOptions{Limit: 2}, all[0], all[1])
		r.create("d", "created in between")
		r.update(all[2], "changed in between")
		r.remove(all[3])
		second := r.lists(backend.ListOptions{Limit: 1, Continue: first.Continue}, all[2])
		require.Equal(r, first.Revision, second.Revision, "pages of one list have one revision")
		require.Equal(r, 1, second.Remaining)
		third := r.lists(backend.ListOptions{Continue: second.Continue}, all[3])
		require.Equal(r, first.Revision, third.Revision, "pages of one list have one revision")
		require.Empty(r, third.Continue)
	}},
	{"List_ExpiredContinueOffersTheNewestState", func(r *rig) {
		a, b, d := r.create("a", "x"), r.create("b", "x"), r.create("d", "x")
		first := r.lists(backend.ListOptions{Limit: 1}, a)
		c := r.create("c", "new")
		d2 := r.update(d, "y")
		r.compact(r.revision())
		_, err := r.Backend.List(r.ctx, backend.ListOptions{Limit: 1, Continue: first.Continue})
		r.fails(err, store.ErrExpired, "a page at a compacted revision")
		var expired *backend.ExpiredContinueError
		require.True(r, errors.As(err, &expired), "the error must offer a way on: %v", err)
		second := r.lists(backend.ListOptions{Limit: 1, Continue: expired.Continue}, b)
		require.Equal(r, r.revision(), second.Revision, "it goes on at the newest state")
		r.lists(backend.ListOptions{Continue: second.Continue}, c, d2)
	}},
}

// pages lists page by page, and demands of each that it is of revision at and
// says how many of total remain.
func (r *rig) pages(opts backend.ListOptions, at store.Revision, total int) (items []*object) {
	r.Helper()
	for {
		page := r.list(opts)
		items = append(items, page.Items...)
		require.LessOrEqual(r, len(page.Items), opts.Limit, "List %+v", opts)
		require.Equal(r, at, page.Revision, "List %+v", opts)
		require.Equal(r, total-len(items), page.Remaining, "List %+v", opts)
		require.Equal(r, page.Remaining == 0, page.Continue == "", "there is a token if and only if something remains: List %+v", opts)
		if page.Continue == "" {
			return items
		}
		opts.Continue = page.Continue
	}
}
