package registry_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// What an admitter does not find is not the object, so that it is not a sign that the object is gone.
func TestDeleteCollection_StopsAtWhatAnAdmitterDoesNotFind(t *testing.T) {
	cfg := config()
	cfg.Admit = []registry.Admitter{registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
		if a.Operation == registry.OperationDelete {
			return fmt.Errorf("its owner: %w", engine.ErrNotFound)
		}
		return nil
	})}
	s := newStore(t, cfg)
	create(t, s, widget("a", 1))
	n, err := s.DeleteCollection(t.Context(), engine.ListOptions{}, registry.DeleteOptions{})
	var refused *registry.AdmissionError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "default/a", refused.Key, "the caller has not named the object")
	require.Zero(t, n)
}

func TestDeleteCollection_DeletesWhatIsSelected(t *testing.T) {
	s := newStore(t, config())
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w := widget(name, 1)
		w.Labels = map[string]string{"even": map[bool]string{true: "yes", false: "no"}[name[0]%2 == 0]}
		create(t, s, w)
	}
	n, err := s.DeleteCollection(t.Context(), engine.ListOptions{Labels: "even=no"}, registry.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	left, err := s.Engine().List(t.Context(), engine.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 2)
}

// A limit is of the objects that are deleted, not of those that are read at once.
func TestDeleteCollection_DeletesNoMoreThanTheLimit(t *testing.T) {
	s := newStore(t, config())
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		create(t, s, widget(name, 1))
	}
	left := func() (names []string) {
		list, err := s.Engine().List(t.Context(), engine.ListOptions{})
		require.NoError(t, err)
		require.NoError(t, s.Engine().WaitForRevision(t.Context(), list.Revision))
		for _, o := range list.Items {
			names = append(names, o.Value.Name)
		}
		return names
	}
	page, err := s.Resources()[0].DeleteCollection(t.Context(), engine.ListOptions{Limit: 2}, registry.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, 2, page.Len())
	require.GreaterOrEqual(t, page.Revision, page.Item(1).Revision(), "a read at the revision finds no deleted object")
	require.Equal(t, []string{"c", "d", "e"}, left())
	page, err = s.Resources()[0].DeleteCollection(t.Context(), engine.ListOptions{Limit: 1, Continue: page.Continue}, registry.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, page.Len())
	require.Equal(t, []string{"d", "e"}, left())
	n, err := s.DeleteCollection(t.Context(), engine.ListOptions{Limit: 1, Read: engine.Cached()}, registry.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, n, "lists of the cache ignore the limit")
	require.Equal(t, []string{"e"}, left())
}

// deletesMoreThanAPage checks that more objects than are read at once are all deleted.
func deletesMoreThanAPage(t *testing.T, cfg registry.Config[Widget]) {
	t.Helper()
	s := newStore(t, cfg)
	for i := range registry.DeletePage + 1 {
		create(t, s, widget(fmt.Sprintf("w%d", i), 1))
	}
	n, err := s.DeleteCollection(t.Context(), engine.ListOptions{}, registry.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, registry.DeletePage+1, n)
}

func TestDeleteCollection_ReadsPages(t *testing.T) { deletesMoreThanAPage(t, config()) }

// Each deletion is a change, too: many of them displace the revision of the first page.
func TestDeleteCollection_GoesOnWhereTheRevisionOfItsFirstPageIsGone(t *testing.T) {
	cfg := config()
	cfg.Engine.Window = engine.Window{MaxEvents: 100}
	deletesMoreThanAPage(t, cfg)
}

// The caller continues a deletion with a limit, and so has to know that the revision of its list has expired.
func TestDeleteCollection_WithALimitReportsThatItsListHasExpired(t *testing.T) {
	cfg := config()
	stored, err := memory.New(registry.Schema(cfg), memory.Options{})
	require.NoError(t, err)
	storage := faulty.New(stored, faulty.Options{})
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	cfg.Engine.Backend, cfg.Engine.NoCache = storage, true
	s := newStore(t, cfg)
	for _, name := range []string{"a", "b", "c"} {
		create(t, s, widget(name, 1))
	}
	r := s.Resources()[0]
	page, err := r.DeleteCollection(t.Context(), engine.ListOptions{Limit: 1}, registry.DeleteOptions{})
	require.NoError(t, err)
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.Expire()})
	_, err = r.DeleteCollection(t.Context(), engine.ListOptions{Limit: 1, Continue: page.Continue}, registry.DeleteOptions{})
	require.ErrorIs(t, err, engine.ErrExpired)
	left, err := s.Engine().List(t.Context(), engine.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 2)
}
