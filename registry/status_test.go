package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// Where the status is not a subresource it is a field as any other, as in Kubernetes' custom resources.
func TestUpdate_GenerationsCountTheStatusUnlessItIsASubresource(t *testing.T) {
	cfg := config()
	cfg.Kind.Status = false
	s := newStore(t, cfg)
	o := create(t, s, widget("a", 1))
	set := func(phase string) int64 {
		next, _, err := s.Update(t.Context(), o.Key, func(old *engine.Object[Widget]) (Widget, error) {
			w := old.Value
			w.Status.Phase = phase
			return w, nil
		}, registry.WriteOptions{})
		require.NoError(t, err)
		return next.Value.Generation
	}
	require.EqualValues(t, 2, set("Ready"))
	require.EqualValues(t, 2, set("Ready"), "nothing has changed")
	require.EqualValues(t, 3, set(""))
}

func TestStatus_ChangesItselfAlone(t *testing.T) {
	s := newStore(t, config())
	o := create(t, s, widget("a", 1))
	next, err := s.UpdateStatus(t.Context(), o.Key, func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Spec.Size, w.Status.Phase = 50, "Ready"
		w.Annotations = map[string]string{"by": "controller"}
		w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Box", Name: "box", UID: "1"}}
		return w, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, next.Value.Spec.Size)
	require.Len(t, next.Value.OwnerReferences, 1)
	require.Equal(t, "Ready", next.Value.Status.Phase)
	require.Equal(t, "controller", next.Value.Annotations["by"])
	require.EqualValues(t, 1, next.Value.Generation)

	cfg := config()
	cfg.Kind.Status = false
	without := newStore(t, cfg)
	w := widget("a", 1)
	w.Status.Phase = "Ready"
	require.Equal(t, "Ready", create(t, without, w).Value.Status.Phase)
	_, err = without.UpdateStatus(t.Context(), "default/a", grow(1), registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrUnsupported)
	require.EqualError(t, err, `status of "default/a": unsupported: Kind.Status of Widget is not set`)
	_, applied := without.ApplyStatus(t.Context(), "default/a", []byte(`{}`), registry.WriteOptions{Manager: "m"})
	require.Equal(t, err, applied)
}

// A write of the status that takes the last finalizer ends a deletion as any other does.
func TestStatus_CanEndADeletion(t *testing.T) {
	s := newStore(t, config())
	o := create(t, s, finalized("a"))
	_, gone, err := s.Delete(t.Context(), o.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.False(t, gone)
	last, err := s.UpdateStatus(t.Context(), o.Key, setFinalizers(), registry.WriteOptions{})
	require.NoError(t, err)
	require.NotNil(t, last.Value.DeletionTimestamp)
	_, err = s.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// With StatusOnly a write of the status takes no part of the metadata, so that it cannot end what
// a finalizer holds up either.
func TestStatus_CanLeaveTheMetadataAlone(t *testing.T) {
	cfg := config()
	cfg.Strategy.StatusOnly = true
	s := newStore(t, cfg)
	w := widget("a", 1)
	w.Finalizers = []string{"example.com/wait"}
	o := create(t, s, w)
	next, err := s.UpdateStatus(t.Context(), o.Key, func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Status.Phase, w.Finalizers = "Ready", nil
		w.Labels, w.Annotations = map[string]string{"a": "b"}, map[string]string{"by": "controller"}
		return w, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, "Ready", next.Value.Status.Phase)
	require.Equal(t, o.Value.ObjectMeta, next.Value.ObjectMeta)
}
