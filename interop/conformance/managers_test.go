package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/corekinds"
)

// groupOfEvents are the events of a group, with Kubernetes' own field manager for them.
type groupOfEvents struct {
	objects registry.Resource
	version schema.GroupVersion
	manager *managedfields.FieldManager
	// applied are the texts that applies set, and updated those that updates set.
	applied, updated []string
}

func newGroupsOfEvents(t *testing.T) (groups []groupOfEvents) {
	t.Helper()
	kinds, err := corekinds.New(t.Context(), corekinds.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kinds.Close()) })
	types := applyconfigurations.NewTypeConverter(legacyscheme.Scheme)
	for _, r := range kinds.Resources() {
		kind := r.Info().Kind.GroupVersionKind()
		if kind.Kind != "Event" {
			continue
		}
		manager, err := managedfields.NewDefaultFieldManager(types, legacyscheme.Scheme, legacyscheme.Scheme, legacyscheme.Scheme,
			kind, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}, "", nil)
		require.NoError(t, err)
		texts := []string{"reason", "message", "action", "type"}
		g := groupOfEvents{r, kind.GroupVersion(), manager, texts, texts}
		if kind.GroupVersion() == eventsv1.SchemeGroupVersion { // by which they may not change
			g.applied, g.updated = []string{"reason", "note", "action", "type"}, nil
		}
		groups = append(groups, g)
	}
	require.Len(t, groups, 2)
	return groups
}

// asInternal returns an event of the group in Kubernetes' internal type.
func (g *groupOfEvents) asInternal(t *testing.T, text []byte) *core.Event {
	t.Helper()
	var decoded runtime.Object = &v1.Event{}
	if g.version == eventsv1.SchemeGroupVersion {
		decoded = &eventsv1.Event{}
	}
	require.NoError(t, json.Unmarshal(text, decoded))
	converted := &core.Event{}
	require.NoError(t, legacyscheme.Scheme.Convert(decoded, converted, nil))
	return converted
}

// live returns the event as the group has it.
func (g *groupOfEvents) live(t *testing.T) []byte {
	t.Helper()
	it, err := g.objects.Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	text, err := it.JSON()
	require.NoError(t, err)
	return text
}

// drawConfig returns a random configuration of the event, or its changes.
func (g *groupOfEvents) drawConfig(r *rand.Rand, texts []string) map[string]any {
	labels := map[string]any{"a": one(r, "x", "y")} // never empty: no Go type of ours stores that
	for range r.IntN(3) {
		labels[one(r, "a", "b", "c")] = one(r, "x", "y")
	}
	o := map[string]any{"apiVersion": g.version.String(), "kind": "Event", "metadata": map[string]any{"name": "a", "namespace": "default", "labels": labels}}
	for _, name := range texts {
		if r.IntN(2) == 0 {
			o[name] = one(r, "Normal", "Warning")
		}
	}
	if r.IntN(2) == 0 {
		o["series"] = map[string]any{"count": one[int64](r, 2, 3), "lastObservedTime": "2026-01-02T03:04:05.000000Z"}
	}
	return o
}

// What managers own of an event by either group is what they would own in Kubernetes, after any writes by both.
func TestManagers_OfEventsOwnWhatTheyOwnInKubernetes(t *testing.T) {
	groups := newGroupsOfEvents(t)
	_, err := groups[0].objects.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"involvedObject":{"namespace":"default","name":"x"},
		"eventTime":"2026-01-02T03:04:05.000000Z","reason":"r","action":"a","message":"m","type":"Normal","reportingComponent":"c","reportingInstance":"i"}`), registry.WriteOptions{Manager: "first"})
	require.NoError(t, err)
	r, done := rand.New(rand.NewPCG(1, 2)), map[string]int{}
	for range 1000 {
		g, opts := one(r, groups...), registry.WriteOptions{Manager: one(r, "one", "two", "three"), Force: r.IntN(2) == 0}
		before := g.live(t)
		var want []metav1.ManagedFieldsEntry
		var failed error
		what := "update"
		if r.IntN(2) == 0 {
			what = "apply"
			want, failed = g.apply(t, before, g.drawConfig(r, g.applied), opts)
		} else {
			want, failed = g.update(t, before, g.drawConfig(r, g.updated), opts)
		}
		var conflict *registry.FieldConflictError
		var invalid *registry.InvalidError
		switch {
		case errors.As(failed, &conflict):
			what = "conflict"
		case errors.As(failed, &invalid): // by the rules of the group
			continue
		default:
			require.NoError(t, failed)
			require.Equal(t, owned(t, want), owned(t, g.asInternal(t, g.live(t)).ManagedFields), "%s by %s of %s", what, opts.Manager, before)
		}
		done[g.version.String()+" "+what]++
	}
	t.Log(done)
	require.Len(t, done, 6)
}

// update merges a change into the event by an update, and returns the managed fields that Kubernetes has after it.
func (g *groupOfEvents) update(t *testing.T, before []byte, change map[string]any, opts registry.WriteOptions) ([]metav1.ManagedFieldsEntry, error) {
	t.Helper()
	var next map[string]any
	require.NoError(t, json.Unmarshal(before, &next))
	next["metadata"].(map[string]any)["labels"] = change["metadata"].(map[string]any)["labels"]
	delete(change, "metadata")
	delete(next, "series")
	for name, value := range change {
		next[name] = value
	}
	body := encode(t, next)
	updated, err := g.manager.Update(g.asInternal(t, before), g.asInternal(t, body), opts.Manager)
	require.NoError(t, err)
	_, _, err = g.objects.Update(t.Context(), "default/a", func(registry.Item) ([]byte, error) { return body, nil }, opts)
	return updated.(*core.Event).ManagedFields, err
}

// apply applies a configuration to the event, and returns the managed fields that Kubernetes has after it. Its error
// is a conflict if that is one in Kubernetes, too.
func (g *groupOfEvents) apply(t *testing.T, before []byte, config map[string]any, opts registry.WriteOptions) ([]metav1.ManagedFieldsEntry, error) {
	t.Helper()
	_, _, err := g.objects.Apply(t.Context(), "default/a", encode(t, config), opts)
	applied, failed := g.manager.Apply(g.asInternal(t, before), &unstructured.Unstructured{Object: config}, opts.Manager, opts.Force)
	var conflict *registry.FieldConflictError
	require.Equal(t, apierrors.IsConflict(failed), errors.As(err, &conflict), "%v, and %v by %s of %s", failed, err, encode(t, config), before)
	if failed != nil {
		require.True(t, apierrors.IsConflict(failed), failed)
		return nil, err
	}
	return applied.(*core.Event).ManagedFields, err
}

// owned returns managed fields without their times, in an order that does not depend on these.
func owned(t *testing.T, entries []metav1.ManagedFieldsEntry) (all []string) {
	t.Helper()
	for _, e := range entries {
		var fields any
		require.NoError(t, json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields))
		all = append(all, fmt.Sprintf("%s %s %s %s", e.Manager, e.Operation, e.APIVersion, encode(t, fields)))
	}
	slices.Sort(all)
	return all
}
