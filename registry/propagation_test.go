package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// The policies for dependents, and the finalizers by which a garbage collector knows them.
const (
	orphan, foreground, background = metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground, metav1.DeletePropagationBackground
	toOrphan, toDeleteFirst        = metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
)

// collected is the configuration of a kind beside whose server a garbage collector runs.
func collected() registry.Config[Widget] {
	cfg := config()
	cfg.GarbageCollection = true
	return cfg
}

func TestDelete_TellsTheGarbageCollectorOfThePolicy(t *testing.T) {
	const own = "example.com/cleanup"
	s := newStore(t, collected())
	for _, c := range []struct {
		before []string
		policy metav1.DeletionPropagation
		after  []string // none if the object is gone
	}{
		{nil, "", nil}, {nil, background, nil}, {nil, orphan, []string{toOrphan}}, {nil, foreground, []string{toDeleteFirst}},
		{[]string{own}, "", []string{own}}, {[]string{own}, background, []string{own}},
		{[]string{own}, orphan, []string{own, toOrphan}}, {[]string{own}, foreground, []string{own, toDeleteFirst}},
		{[]string{toOrphan}, "", []string{toOrphan}}, {[]string{toOrphan}, background, nil},
		{[]string{toOrphan}, orphan, []string{toOrphan}}, {[]string{toOrphan}, foreground, []string{toDeleteFirst}},
		{[]string{toDeleteFirst, own}, "", []string{toDeleteFirst, own}}, {[]string{toDeleteFirst, own}, background, []string{own}},
		{[]string{toDeleteFirst, own}, orphan, []string{own, toOrphan}}, {[]string{toDeleteFirst, own}, foreground, []string{toDeleteFirst, own}},
	} {
		w := widget("", 1)
		w.GenerateName, w.Finalizers = "a-", c.before
		o := create(t, s, w)
		for _, dryRun := range []bool{true, false} {
			last, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{Propagation: c.policy, DryRun: dryRun, Revision: o.Revision})
			require.NoError(t, err)
			require.Equal(t, len(c.after) == 0, gone, "%v", c)
			require.Equal(t, c.before, o.Value.Finalizers, "states are not changed")
			if !gone {
				require.Equal(t, c.after, last.Value.Finalizers, "%v", c)
				require.NotNil(t, last.Value.DeletionTimestamp)
				require.EqualValues(t, 2, last.Value.Generation)
			}
		}
		now, err := s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
		if len(c.after) == 0 {
			require.ErrorIs(t, err, engine.ErrNotFound, "%v", c)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.after, now.Value.Finalizers, "%v", c)
	}
}

// A client may change its mind for as long as the collector has not finished.
func TestDelete_PolicyReplacesThatOfAnEarlierDeletion(t *testing.T) {
	s := newStore(t, collected())
	o := create(t, s, widget("a", 1))
	remove := func(policy metav1.DeletionPropagation) (*engine.Object[Widget], bool) {
		t.Helper()
		o, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{Propagation: policy})
		require.NoError(t, err)
		return o, gone
	}
	first, _ := remove(foreground)
	for _, policy := range []metav1.DeletionPropagation{foreground, ""} {
		same, gone := remove(policy)
		require.False(t, gone)
		require.Equal(t, first.Revision, same.Revision, "%q changes nothing", policy)
	}
	second, gone := remove(orphan)
	require.False(t, gone)
	require.Equal(t, []string{toOrphan}, second.Value.Finalizers)
	require.Equal(t, first.Value.DeletionTimestamp, second.Value.DeletionTimestamp)
	require.EqualValues(t, 2, second.Value.Generation, "the deletion is one change")
	_, gone = remove(background)
	require.True(t, gone)
}

func TestDelete_LastsUntilTheGarbageCollectorHasFinished(t *testing.T) {
	s := newStore(t, collected())
	o := create(t, s, widget("a", 1))
	_, _, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{Propagation: orphan})
	require.NoError(t, err)
	_, _, err = s.Update(t.Context(), o.Key, setFinalizers(toOrphan, toDeleteFirst), registry.WriteOptions{})
	require.ErrorAs(t, err, new(*registry.InvalidError), "only a deletion adds finalizers")
	_, _, err = s.Update(t.Context(), o.Key, setFinalizers(), registry.WriteOptions{})
	require.NoError(t, err)
	_, err = s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// As in Kubernetes, a deletion that leaves a grace period as it was changes nothing else either.
func TestDelete_PolicyWithinAGracePeriod(t *testing.T) {
	cfg := collected()
	cfg.Strategy.Grace = halfAMinute
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	for _, step := range []struct {
		policy     metav1.DeletionPropagation
		asked      *int64
		left       int64
		finalizers []string
	}{
		{orphan, nil, 30, []string{toOrphan}},
		{foreground, nil, 30, []string{toOrphan}},
		{foreground, new(int64(60)), 30, []string{toOrphan}},
		{foreground, new(int64(5)), 5, []string{toDeleteFirst}},
		{background, nil, 5, []string{toDeleteFirst}},
		{orphan, new(int64(0)), 0, []string{toOrphan}},
		{foreground, nil, 0, []string{toDeleteFirst}},
	} {
		marked, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{Propagation: step.policy, GracePeriodSeconds: step.asked})
		require.NoError(t, err)
		require.False(t, gone)
		require.Equal(t, step.left, *marked.Value.DeletionGracePeriodSeconds, "%v", step)
		require.Equal(t, step.finalizers, marked.Value.Finalizers, "%v", step)
	}
	_, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{Propagation: background})
	require.NoError(t, err)
	require.True(t, gone)
}

func TestDeleteCollection_TellsTheGarbageCollectorOfThePolicy(t *testing.T) {
	s := newStore(t, collected())
	for _, name := range []string{"a", "b"} {
		create(t, s, widget(name, 1))
	}
	n, err := s.DeleteCollection(t.Context(), engine.ListOptions{}, registry.DeleteOptions{Propagation: orphan})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	list, err := s.Engine().List(t.Context(), engine.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 2)
	for _, o := range list.Items {
		require.Equal(t, []string{toOrphan}, o.Value.Finalizers)
	}
}

// Nothing would remove the finalizers where no collector runs.
func TestDelete_AddsNoFinalizerWithoutAGarbageCollector(t *testing.T) {
	s := newStore(t, config())
	for _, policy := range []metav1.DeletionPropagation{orphan, foreground} {
		_, gone, err := s.Delete(t.Context(), create(t, s, widget("a", 1)).Key, registry.DeleteOptions{Propagation: policy})
		require.NoError(t, err)
		require.True(t, gone)
	}
	w := widget("kept", 1)
	w.Finalizers = []string{toOrphan}
	marked, gone, err := s.Delete(t.Context(), create(t, s, w).Key, registry.DeleteOptions{Propagation: background})
	require.NoError(t, err)
	require.False(t, gone)
	require.Equal(t, []string{toOrphan}, marked.Value.Finalizers)
}
