package backendtest

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

func isConflict(err error) bool { return errors.Is(err, store.ErrConflict) }

// future returns revisions that have not happened, up to the last of those that fit in 63
// bits and in 64.
func future(now store.Revision) []store.Revision {
	return []store.Revision{now + 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64}
}

// badKeys are keys that cannot name an object.
var badKeys = []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a\x00b", "\xff"}

var readChecks = []check{
	{"Get_ReturnsTheNewest", func(x *fixture) {
		_, err := x.Backend.Get(x.ctx, "a/1")
		x.fails(err, store.ErrNotFound, "Get before creation")
		o := x.create("a/1", "x")
		x.holds(o)
		o = x.update(o, "y")
		x.holds(o)
		_, err = x.Backend.Get(x.ctx, "a")
		x.fails(err, store.ErrNotFound, "a prefix is not an object")
		x.remove(o)
		_, err = x.Backend.Get(x.ctx, "a/1")
		x.fails(err, store.ErrNotFound, "Get after removal")
	}},
	{"List_AtEachRevision", func(x *fixture) {
		type moment struct {
			at    store.Revision
			state []*object
		}
		a := x.create("a", "1")
		b := x.create("b", "1")
		history := []moment{{a.Revision, []*object{a}}, {b.Revision, []*object{a, b}}}
		c := x.create("a/c", "1") // between the two
		history = append(history, moment{c.Revision, []*object{a, c, b}})
		a2 := x.update(a, "2")
		history = append(history, moment{a2.Revision, []*object{a2, c, b}})
		history = append(history, moment{x.remove(c).Revision, []*object{a2, b}})
		history = append(history, moment{x.remove(a2).Revision, []*object{b}})
		for _, m := range history {
			l := x.lists(backend.ListOptions{Revision: m.at}, m.state...)
			require.Equal(x, m.at, l.Revision, "a list at a revision is of that revision")
			first := x.lists(backend.ListOptions{Revision: m.at, Limit: 1}, m.state[0])
			x.remain(first, len(m.state)-1)
		}
	}},
	{"List_RefusesWhatCannotBe", func(x *fixture) {
		x.create("a", "1")
		x.create("b", "1")
		page := x.list(backend.ListOptions{Limit: 1})
		now := x.revision()
		for _, at := range future(now) {
			for limit := range 2 {
				_, err := x.Backend.List(x.ctx, backend.ListOptions{Revision: at, Limit: limit})
				x.fails(err, store.ErrFuture, "List at %d of %d, up to %d objects", at, now, limit)
			}
		}
		for _, c := range []struct {
			opts backend.ListOptions
			want error
		}{
			{backend.ListOptions{Revision: now, Continue: page.Continue}, usercode.ErrConfig},
			{backend.ListOptions{Limit: -1}, usercode.ErrConfig},
			{backend.ListOptions{Continue: "nonsense"}, store.ErrInvalidContinue},
			{backend.ListOptions{Continue: backend.Token{Revision: now + 1, Start: "a"}.Encode()}, store.ErrInvalidContinue},
			{backend.ListOptions{Prefix: "b", Continue: page.Continue}, store.ErrInvalidContinue},
		} {
			_, err := x.Backend.List(x.ctx, c.opts)
			x.fails(err, c.want, "List %+v", c.opts)
		}
	}},
	{"List_PrefixesAreOfWholePathSegments", func(x *fixture) {
		var all []*object
		for _, key := range []string{"foo", "foo-1", "foo/a", "foo/a/b", "foo/b", "foobar", "foobar/a", "goo"} {
			all = append(all, x.create(key, "x"))
		}
		for _, c := range []struct {
			prefix string
			want   []int
		}{
			{"", []int{0, 1, 2, 3, 4, 5, 6, 7}},
			{"foo", []int{0, 2, 3, 4}},
			{"foo/", []int{2, 3, 4}},
			{"foo/a", []int{2, 3}},
			{"foo/a/", []int{3}},
			{"foobar", []int{5, 6}},
			{"fo", nil},
			{"zoo", nil},
		} {
			var want []*object
			for _, i := range c.want {
				want = append(want, all[i])
			}
			x.lists(backend.ListOptions{Prefix: c.prefix}, want...)
			x.lists(backend.ListOptions{Prefix: c.prefix, Revision: x.revision()}, want...)
			x.lists(backend.ListOptions{Prefix: c.prefix, Limit: len(all)}, want...)
		}
	}},
	{"Keys_MalformedOnesAreRefusedByEveryVerb", func(x *fixture) {
		o := x.create("a", "x")
		for _, key := range badKeys {
			_, err := x.Backend.Get(x.ctx, key)
			x.fails(err, store.ErrInvalidKey, "Get %q", key)
			_, err = x.tryPut(draft(key, ""), nil, backend.PutOptions{})
			x.fails(err, store.ErrInvalidKey, "Put %q", key)
			_, err = x.Backend.Remove(x.ctx, at(key, o.Revision))
			x.fails(err, store.ErrInvalidKey, "Remove %q", key)
			if key == "" || key == "a/" {
				continue // valid as prefixes
			}
			_, err = x.Backend.List(x.ctx, backend.ListOptions{Prefix: key})
			x.fails(err, store.ErrInvalidKey, "List %q", key)
			_, err = x.Backend.Watch(x.ctx, backend.WatchOptions{Prefix: key, Notify: func() {}})
			x.fails(err, store.ErrInvalidKey, "Watch %q", key)
		}
		x.holds(o)
	}},
	{"Revision_IsThatOfTheNewestChange", func(x *fixture) {
		o := x.create("a", "x")
		require.Equal(x, o.Revision, x.revision())
		o = x.update(o, "y")
		require.Equal(x, o.Revision, x.revision())
		require.Equal(x, x.remove(o).Revision, x.revision())
	}},
	{"Reads_SeeWhatWasAcknowledged", func(x *fixture) {
		var state []*object
		for i := range 20 {
			o := x.create(fmt.Sprintf("k%02d", i), "x")
			state = append(state, o)
			l := x.lists(backend.ListOptions{}, state...)
			require.GreaterOrEqual(x, l.Revision, o.Revision, "the list is older than what it shows")
			require.GreaterOrEqual(x, x.revision(), l.Revision)
			got, err := x.Backend.Get(x.ctx, o.Key)
			require.NoError(x, err)
			require.Equal(x, describe(o), describe(got))
		}
	}},
	{"Reads_BesideWritersSeeWhatWasAcknowledged", func(x *fixture) {
		const writers, each = 4, 25
		var acknowledged newest
		errs := make(chan error, writers)
		for w := range writers {
			go func() { errs <- x.readBack(fmt.Sprint("w/", w), each, &acknowledged) }()
		}
		var failed []error
		for range writers { // until all have ended
			failed = append(failed, <-errs)
		}
		require.NoError(x, errors.Join(failed...))
	}},
	{"Contract_StateOfAListIsTheList", func(x *fixture) {
		a, b := x.create("a", "1"), x.create("b", "1")
		a2 := x.update(a, "2")
		for rev, want := range map[store.Revision][]*object{0: {a2, b}, a2.Revision: {a2, b}, b.Revision: {a, b}, a.Revision: {a}} {
			l := x.list(backend.ListOptions{Revision: rev, State: true, Limit: 1})
			if l.State == nil {
				continue // it has none, which is allowed
			}
			require.Empty(x, l.Items, "with State there are no items")
			require.Empty(x, l.Continue, "State is all of the list")
			require.Equal(x, describeAll(want), describeAll(l.State.AppendTo(nil, "")), "at revision %d", l.Revision)
		}
		x.lists(backend.ListOptions{Prefix: "b", State: true}, b)
	}},
	{"Contract_EmptyStorageHasARevision", func(x *fixture) {
		l := x.lists(backend.ListOptions{})
		require.NotZero(x, l.Revision, "a watch from revision zero starts now: it would miss what comes between the list and the watch")
		require.Equal(x, l.Revision, x.revision())
		require.Equal(x, l.Revision, x.lists(backend.ListOptions{Revision: l.Revision}).Revision)
		f := x.follow("", l.Revision)
		f.sees(added(x.create("a", "x")))
	}},
}

var pageChecks = []check{
	{"List_PagesAddUp", func(x *fixture) {
		var all []*object
		for i := range 7 {
			all = append(all, x.create(fmt.Sprintf("p/%d", i), "x"))
		}
		x.create("q", "not under the prefix")
		at := x.revision()
		for limit := 1; limit <= len(all)+1; limit++ {
			got := x.pages(backend.ListOptions{Prefix: "p", Limit: limit}, at, len(all))
			require.Equal(x, describeAll(all), describeAll(got), "in pages of %d", limit)
		}
	}},
	{"List_StartsAtAKey", func(x *fixture) {
		var all []*object
		for _, key := range []string{"a", "b", "b/1", "b0", "c", "cä", "c\U0010ffff", "d"} {
			all = append(all, x.create(key, "x"))
		}
		at := x.revision()
		gone := x.remove(x.create("e", "x"))
		for i, o := range all {
			x.lists(backend.ListOptions{Start: o.Key}, all[i:]...)
			x.lists(backend.ListOptions{Start: o.Key, Revision: at}, all[i:]...)
			got := x.pages(backend.ListOptions{Start: o.Key, Limit: 2}, gone.Revision, len(all)-i)
			require.Equal(x, describeAll(all[i:]), describeAll(got), "in pages from %q on", o.Key)
		}
		x.lists(backend.ListOptions{Start: "b/", Limit: 1}, all[2])
		x.lists(backend.ListOptions{Start: "b/0", Prefix: "b"}, all[2])
		x.lists(backend.ListOptions{Start: "a", Prefix: "b"}, all[1], all[2])
		x.lists(backend.ListOptions{Start: "d0"})
		_, err := x.Backend.List(x.ctx, backend.ListOptions{Start: "b//"})
		x.fails(err, store.ErrInvalidKey, "a list that starts at no key")
		page := x.lists(backend.ListOptions{Limit: 1}, all[0])
		_, err = x.Backend.List(x.ctx, backend.ListOptions{Start: "b", Continue: page.Continue})
		x.fails(err, store.ErrInvalidContinue, "a page of a list with another start")
	}},
	{"List_PagesDoNotSeeLaterWrites", func(x *fixture) {
		var all []*object
		for _, key := range []string{"a", "c", "e", "g"} {
			all = append(all, x.create(key, "x"))
		}
		first := x.lists(backend.ListOptions{Limit: 2}, all[0], all[1])
		x.create("d", "created in between")
		x.update(all[2], "changed in between")
		x.remove(all[3])
		second := x.lists(backend.ListOptions{Limit: 1, Continue: first.Continue}, all[2])
		require.Equal(x, first.Revision, second.Revision, "pages of one list have one revision")
		x.remain(second, 1)
		third := x.lists(backend.ListOptions{Continue: second.Continue}, all[3])
		require.Equal(x, first.Revision, third.Revision, "pages of one list have one revision")
		require.Empty(x, third.Continue)
	}},
	{"List_ExpiredContinueOffersTheNewestState", func(x *fixture) {
		a, b, d := x.create("a", "x"), x.create("b", "x"), x.create("d", "x")
		first := x.lists(backend.ListOptions{Limit: 1}, a)
		c := x.create("c", "new")
		d2 := x.update(d, "y")
		x.compact(x.revision())
		_, err := x.Backend.List(x.ctx, backend.ListOptions{Limit: 1, Continue: first.Continue})
		x.fails(err, store.ErrExpired, "a page at a compacted revision")
		var expired *backend.ExpiredContinueError
		require.True(x, errors.As(err, &expired), "the error must offer a way on: %v", err)
		second := x.lists(backend.ListOptions{Limit: 1, Continue: expired.Continue}, b)
		require.Equal(x, x.revision(), second.Revision, "it goes on at the newest state")
		x.lists(backend.ListOptions{Continue: second.Continue}, c, d2)
	}},
}

// remain checks that want objects remain after a page, unless the page does not know how many.
func (x *fixture) remain(page *backend.List, want int) {
	x.Helper()
	if want == 0 || page.Remaining != -1 {
		require.Equal(x, want, page.Remaining, "objects after the page at revision %d", page.Revision)
	}
}

// pages lists page by page, and checks that each is of revision at and says how many of
// total remain, if it knows.
func (x *fixture) pages(opts backend.ListOptions, at store.Revision, total int) (items []*object) {
	x.Helper()
	for {
		page := x.list(opts)
		items = append(items, page.Items...)
		require.LessOrEqual(x, len(page.Items), opts.Limit, "List %+v", opts)
		require.Equal(x, at, page.Revision, "List %+v", opts)
		x.remain(page, total-len(items))
		require.Equal(x, page.Remaining == 0, page.Continue == "", "there is a token if and only if something remains: List %+v", opts)
		if page.Continue == "" {
			return items
		}
		opts.Continue = page.Continue
	}
}

// newest is the newest revision that any writer was told.
type newest struct{ atomic.Uint64 }

// told notes the revision of a write that was acknowledged.
func (n *newest) told(rev store.Revision) {
	for was := n.Load(); was < uint64(rev) && !n.CompareAndSwap(was, uint64(rev)); {
		was = n.Load()
	}
}

// readBack writes n times under a key, and after each write checks that reads show it, and are not
// older than what any writer was told before them.
func (x *fixture) readBack(key string, n int, acknowledged *newest) error {
	var prev *object
	for i := range n {
		o, err := x.tryPut(draft(key, fmt.Sprint(i)), prev, backend.PutOptions{})
		if err != nil {
			return err
		}
		acknowledged.told(o.Revision)
		if err := x.shows(o, store.Revision(acknowledged.Load())); err != nil {
			return err
		}
		prev = o
	}
	return nil
}

// shows returns an error unless o is the object under its key, and Revision and List are at least at
// a revision.
func (x *fixture) shows(o *object, least store.Revision) error {
	rev, err := x.Backend.Revision(x.ctx)
	if err != nil {
		return err
	}
	l, err := x.Backend.List(x.ctx, backend.ListOptions{Prefix: o.Key})
	if err != nil {
		return err
	}
	got, err := x.Backend.Get(x.ctx, o.Key)
	switch {
	case err != nil:
		return err
	case rev < least:
		return fmt.Errorf("the newest revision is %d, after a write at %d was acknowledged", rev, least)
	case l.Revision < least:
		return fmt.Errorf("a list is of revision %d, after a write at %d was acknowledged", l.Revision, least)
	case len(l.Items) != 1 || describe(l.Items[0]) != describe(o):
		return fmt.Errorf("a list has %v, after %s was acknowledged", describeAll(l.Items), describe(o))
	case describe(got) != describe(o):
		return fmt.Errorf("there is %s, after %s was acknowledged", describe(got), describe(o))
	}
	return nil
}
