package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// fill puts n objects into the source.
func (r *fixture) fill(n int) {
	for i := range n {
		r.source.put(fmt.Sprint(i), "v")
	}
}

func TestRelist_IsPagedAsTheFirst(t *testing.T) {
	r := newFixture(t)
	r.fill(3)
	cfg := r.config()
	cfg.PageSize = 2
	r.start(cfg)
	first := r.source.asked()
	require.Equal(t, []string{`list "" limit=2 continue=""`, `list "" limit=2 continue="3:2"`, `watch "" from=3`}, first)
	r.ref.Relist(reflector.Requested)
	r.pass(seconds)
	require.Equal(t, append(first, first...), r.source.asked())
	r.synced()
}

// A relist that is older than the last update is refused once, since a lagging
// replica may catch up.
func TestRelist_OlderThanWhatWasDeliveredIsRefused(t *testing.T) {
	r := newFixture(t)
	r.fill(10)
	r.start(r.config())
	r.source.rev = 9
	delete(r.source.objects, "9")
	r.ref.Relist(reflector.Requested)
	r.pass(reflector.DefaultInitial)
	var back *reflector.WentBackError
	require.ErrorAs(t, r.ref.Stats().LastError, &back)
	require.Equal(t, reflector.WentBackError{Last: 10, Listed: 9}, *back)
	require.Len(t, r.mirror.state, 10)

	r.source.put("9", "v")
	r.pass(seconds)
	r.synced()
	require.Equal(t, []string{"Replace Started@10", "Unavailable: " + back.Error(), "Replace Repeated@10"}, r.mirror.told())
}

// An object that is kept does not keep the rest of its list alive.
func TestList_ObjectThatIsKeptDoesNotKeepItsPage(t *testing.T) {
	r := newFixture(t)
	r.fill(4)
	cfg := r.config()
	cfg.PageSize = 2
	r.start(cfg)
	kept := r.mirror.updates[0].Objects[0]
	others := weaken(r.mirror.updates[0].Objects[1:])
	r.mirror.told() // forgets them
	for _, key := range []string{"1", "2", "3"} {
		r.source.remove(key)
	}
	r.settle()
	r.mirror.told()
	r.source.compact()

	runtime.GC()
	for _, other := range others {
		require.Nil(t, other.Value())
	}
	require.Equal(t, "0", kept.Key)
	require.True(t, r.ref.Alive())
}

func weaken(objects []*store.Object) []weak.Pointer[store.Object] {
	var weakened []weak.Pointer[store.Object]
	for _, o := range objects {
		weakened = append(weakened, weak.Make(o))
	}
	return weakened
}

// oddPages is a source that does not know how many objects remain, and that keeps the array of
// its first page.
type oddPages struct {
	*source
	kept []*store.Object
}

func (s *oddPages) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	page, err := s.source.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	page.Remaining = -1
	if opts.Continue == "" {
		s.kept = append(page.Items, newThing(store.Object{Key: "z"}, "the source's"))
		page.Items = s.kept[:len(page.Items)]
	}
	return page, nil
}

// A source may count no remaining objects, and may use the array of a page itself.
func TestList_LeavesTheArrayOfAPageToItsSource(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.source.put("b", "2")
	cfg, pages := r.config(), &oddPages{source: r.source}
	cfg.PageSize, cfg.Source = 1, pages
	r.start(cfg)
	r.synced()
	require.Equal(t, []string{"Replace Started@2"}, r.mirror.told())
	require.Empty(t, r.errs)
	require.Equal(t, "the source's", value(pages.kept[1]))
}

// The revision and the objects of a list are not visible before its last page.
func TestList_NothingIsDeliveredOfAnIncompleteOne(t *testing.T) {
	r := newFixture(t)
	r.fill(5)
	r.source.fail("list", nil, nil, errReset)
	cfg := r.config()
	cfg.PageSize = 2
	r.start(cfg)
	require.Equal(t, uint64(2), r.ref.Stats().Pages)
	require.Zero(t, r.ref.Stats().Revision)
	require.Equal(t, []string{"Unavailable: connection reset"}, r.mirror.told())
	r.source.put("late", "v")
	r.pass(seconds)
	r.synced()
	require.Equal(t, []string{"Replace Started@6"}, r.mirror.told())

	r.ref.Relist(reflector.Requested)
	r.settle()
	r.source.put("later", "v")
	r.source.fail("list", nil, errReset)
	r.pass(r.ref.Stats().Delay)
	require.Equal(t, reflector.Waiting, r.ref.Stats().Phase)
	require.Equal(t, store.Revision(6), r.ref.Stats().Revision, "still")
	require.Equal(t, []string{"Unavailable: connection reset"}, r.mirror.told())
	r.pass(time.Minute)
	r.synced()
}

// Resumes that deliver nothing are bounded by count, not time; the count starts
// over when a watch delivers.
func TestWatch_ResumesAreBoundedUntilOneBringsSomething(t *testing.T) {
	r := newFixture(t)
	r.fill(1)
	cfg := r.config()
	cfg.ResumeAttempts = 3
	r.start(cfg)
	for range 4 {
		r.source.disturb(errReset)
		r.source.fail("watch", errReset)
		r.pass(time.Minute)
		r.source.put("0", "new")
		r.synced()
	}
	require.Equal(t, 1, r.count("list"), "eight failures, but never three in a row")

	r.source.disturb(errReset)
	r.source.fail("watch", errReset, errReset)
	r.pass(2 * time.Minute)
	require.Equal(t, 2, r.count("list"))
	require.Equal(t, uint64(1), r.ref.Stats().Relists[reflector.Stuck])

	r.source.disturb(&store.ExpiredError{Requested: 1, Oldest: 2})
	r.pass(time.Minute)
	require.Equal(t, uint64(1), r.ref.Stats().Relists[reflector.Expired], "is not worth a second attempt")
	r.synced()
}

// present is a source that lists its newest state only.
type present struct {
	*source
	refusal error
}

func (p present) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if opts.Revision != 0 {
		return nil, p.refusal
	}
	return p.source.List(ctx, opts)
}

// A watch that broke is resumed if it has missed few revisions, and replaced by a list if it
// has missed many.
func TestListWhenBehind_ResumesOrLists(t *testing.T) {
	for blocks, name := range map[bool]string{false: "in its turn", true: "in a child"} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.source.traits.Blocks = blocks
			r.fill(3)
			cfg := r.config()
			cfg.ListWhenBehind = 5
			r.start(cfg)
			for _, missed := range []int{5, 6} {
				r.source.disturb(errReset)
				r.settle()
				for i := range missed {
					r.source.put("a", fmt.Sprint(i))
				}
				r.pass(seconds)
				r.synced()
			}
			require.Equal(t, []string{
				"Replace Started@3", "Unavailable: connection reset", "Progress@3", "Changes@8", "Unavailable: connection reset", "Replace Behind@14",
			}, r.mirror.told())
			require.Equal(t, uint64(1), r.ref.Stats().Relists[reflector.Behind])
			require.Equal(t, uint64(2), r.ref.Stats().Lists)
		})
	}
}

// A source that never lists a past state is followed from the newest one, with whatever
// error it refuses.
func TestWarmStart_OfASourceThatListsNoPastState(t *testing.T) {
	for name, refusal := range map[string]error{
		"a bad request":  errors.New("400 Bad Request"),
		"it is denied":   backend.ErrDenied,
		"it times out":   fmt.Errorf("%w: no answer", backend.ErrUnavailable),
		"a torn list":    reflector.ErrTornList,
		"it is too much": backend.ErrTooLarge,
		"unsupported":    store.ErrUnsupported,
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.source.put("a", "1")
			r.source.put("a", "2")
			cfg := r.config()
			cfg.WarmStart, cfg.Source = true, present{r.source, refusal}
			r.start(cfg)
			r.pass(time.Minute)
			r.source.put("b", "3")
			r.synced()
			told := r.mirror.told()
			require.Equal(t, []string{"Replace Started@2", "Changes@3"}, told[len(told)-2:])
		})
	}
}
