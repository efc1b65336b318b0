package reflector_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// restored is a source that is restored from another copy right after its first list,
// whose answer does not say which storage it is of.
type restored struct {
	*source
	id    string
	tells bool // whether later lists tell the storage
	lists int
}

func (s *restored) StoreID(context.Context) (string, error) { return s.id, nil }

func (s *restored) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	list, err := s.source.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	if s.lists++; s.lists == 1 {
		s.id = "after"
		s.remove("a")
		s.put("b", "of the copy")
	} else if s.tells {
		list.StoreID = s.id
	}
	return list, nil
}

// A list that does not tell its storage may be of the one before a restore: what the
// Reflector delivers is of the storage that it was told after.
func TestList_ThatDoesNotTellItsStorageIsNotContinuedByAnother(t *testing.T) {
	for name, tells := range map[string]bool{"later lists tell": true, "no list tells": false} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.source.traits.Identifies = true
			r.source.put("a", "before")
			cfg := r.config()
			cfg.Source = &restored{source: r.source, id: "before", tells: tells}
			r.start(cfg)
			r.synced()
			first := r.mirror.updates[0]
			require.Equal(t, reflector.Replace, first.Kind)
			require.Equal(t, "after", first.StoreID)
			require.Len(t, first.Objects, 1)
			require.Equal(t, "b", first.Objects[0].Key)
			require.Equal(t, 2, r.count("list"))
		})
	}
}

// replaced is a source whose storage becomes another one at one of its lists, right
// before the page is read or, if late, after it, with the same revision. Its lists do not
// say which it is.
type replaced struct {
	*source
	id        string
	at, lists int
	late      bool
}

func (s *replaced) StoreID(context.Context) (string, error) { return s.id, nil }

func (s *replaced) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if s.lists++; s.lists != s.at {
		return s.source.List(ctx, opts)
	}
	if s.late {
		defer s.replace()
	} else {
		s.replace()
	}
	return s.source.List(ctx, opts)
}

func (s *replaced) replace() {
	s.id = "after"
	for key := range s.objects {
		s.objects[key] = newThing(*s.objects[key], "of the copy")
	}
}

// No update has objects of one storage and the identity of another, nor of both.
func TestList_OfStorageThatIsReplacedMeanwhileIsListedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		page, at   int
		late       bool
		identifies bool // the lists should tell their storage; the first one is then repeated
	}{
		"before the first page": {page: 1, at: 1}, "before the last": {page: 1, at: 2}, "after the last": {page: 1, at: 2, late: true},
		"after the only one":               {page: 2, at: 1, late: true},
		"before the last that should tell": {page: 1, at: 3, identifies: true}, "after the last that should tell": {page: 1, at: 3, late: true, identifies: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.source.traits.Identifies = tc.identifies
			r.source.put("a", "before")
			r.source.put("b", "before")
			cfg := r.config()
			cfg.PageSize, cfg.Source = tc.page, &replaced{source: r.source, id: "before", at: tc.at, late: tc.late}
			r.start(cfg)
			r.synced()
			first := r.mirror.updates[0]
			require.Equal(t, []string{"Replace Started@2"}, r.mirror.told())
			require.Equal(t, "after", first.StoreID)
			require.Equal(t, []string{"of the copy", "of the copy"}, []string{value(first.Objects[0]), value(first.Objects[1])})
			require.ErrorIs(t, r.ref.Stats().LastError, reflector.ErrTornList)
			require.ErrorContains(t, r.ref.Stats().LastError, "storage became another one meanwhile")
		})
	}
}

// The storage is identified before the first page and after the last.
func TestList_PagesInTheMiddleNeedNotTellTheirStorage(t *testing.T) {
	r := newFixture(t)
	for _, key := range []string{"a", "b", "c", "d"} {
		r.source.put(key, "1")
	}
	cfg := r.config()
	cfg.PageSize, cfg.Source = 1, &replaced{source: r.source, id: "same"}
	r.start(cfg)
	r.synced()
	require.Equal(t, "same", r.mirror.updates[0].StoreID)
	require.Equal(t, 4, r.count("list"))
	require.Empty(t, r.errs)
}

// mute is a source that fails once to tell its storage.
type mute struct {
	*source
	failed bool
}

var errMute = errors.New("no answer")

func (s *mute) StoreID(context.Context) (string, error) {
	if !s.failed {
		s.failed = true
		return "", errMute
	}
	return "storage", nil
}

func TestList_OfStorageThatIsNotIdentifiedIsNotMade(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	cfg := r.config()
	cfg.Source = &mute{source: r.source}
	r.start(cfg)
	require.Len(t, r.errs, 1)
	require.ErrorIs(t, r.errs[0], errMute)
	require.Zero(t, r.count("list"))
	r.pass(seconds)
	r.synced()
	require.Equal(t, []string{"Unavailable: no answer", "Replace Started@1"}, r.mirror.told())
}

// told is a source whose lists tell the storage. Nothing else knows it, as with a
// decorator that hides it.
type told struct{ *source }

func (s told) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	list, err := s.source.List(ctx, opts)
	if err == nil {
		list.StoreID = "known to lists"
	}
	return list, err
}

func TestWatch_ThatDoesNotTellItsStorageContinuesAList(t *testing.T) {
	r := newFixture(t)
	r.source.traits.Identifies = true
	r.source.put("a", "1")
	cfg := r.config()
	cfg.Source = told{r.source}
	r.start(cfg)
	r.source.put("a", "2")
	r.synced()
	require.Equal(t, []string{"Replace Started@1", "Changes@2"}, r.mirror.told())
}

// lagging is a source that answers its next list from a replica that is late.
type lagging struct {
	*source
	late *backend.List
}

func (s *lagging) StoreID(context.Context) (string, error) { return "same", nil }

func (s *lagging) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if late := s.late; late != nil {
		s.late = nil
		return late, nil
	}
	return s.source.List(ctx, opts)
}

// A Reflector that was restarted still knows which storage its last revision is of, and
// so refuses an older list.
func TestRestart_DoesNotGoBackWithALateReplica(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	cfg := r.config()
	lag := &lagging{source: r.source}
	cfg.Source = lag
	r.start(cfg)
	late, err := r.source.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	r.source.put("b", "1")
	r.settle()
	lag.late, r.mirror.panics = late, 1
	r.source.put("c", "1")
	r.pass(time.Minute)
	r.synced()
	require.Equal(t, uint64(1), r.ref.Stats().Restarts)
	told := r.mirror.told()
	require.Equal(t, []string{"Replace Started@1", "Changes@2"}, told[:2])
	require.Equal(t, "Replace Repeated@3", told[len(told)-1])
}

// A late replica says that the last revision is in the future, and lists an older one. Its
// storage is the same, so it has not gone back.
func TestFuture_OfALateReplicaDoesNotGoBack(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	late, err := r.source.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	r.source.put("a", "2")
	cfg := r.config()
	lag := &lagging{source: r.source}
	cfg.Source = lag
	r.start(cfg)
	lag.late = late
	r.source.fail("watch", &store.FutureError{Requested: 2, Current: 1})
	r.source.disturb(store.ErrClosed)
	r.pass(time.Minute)
	r.synced()
	for _, u := range r.mirror.updates {
		require.True(t, u.Kind == reflector.Unavailable || u.Revision == 2, "no update is older than the first")
	}
	told := r.mirror.told()
	require.Equal(t, "Replace Repeated@2", told[len(told)-1])
}
