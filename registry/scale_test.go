package registry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

// scaled is the configuration of widgets whose size is their number of replicas, of which a
// clear one has none.
func scaled() registry.Config[Widget] {
	cfg := config()
	cfg.Scale = &registry.Scale[Widget]{
		Replicas: func(w *Widget) (int32, bool) { return int32(w.Spec.Size), w.Spec.Color != "clear" },
		SetReplicas: func(w *Widget, n int32) {
			w.Spec.Size = int(n)
			if w.Spec.Color == "clear" {
				w.Spec.Color = "white"
			}
		},
		Observed: func(w *Widget) int32 { return int32(len(w.Status.Phase)) },
		Selector: func(w *Widget) string { return "of=" + w.Name },
	}
	return cfg
}

// scaleOf returns a store's scale subresource.
func scaleOf(t *testing.T, s *registry.Store[Widget]) registry.Resource {
	t.Helper()
	require.Len(t, s.Resources(), 3)
	return s.Resources()[2]
}

// kindOf names the kind of an error.
func kindOf(err error) string {
	var invalid *registry.InvalidError
	var bad *registry.BadRequestError
	switch {
	case errors.As(err, &invalid):
		return "invalid"
	case errors.As(err, &bad):
		return "bad request"
	case errors.Is(err, engine.ErrConflict):
		return "conflict"
	}
	return "another"
}

// setting returns what puts a scale.
func setting(format string, args ...any) func(registry.Item) ([]byte, error) {
	return func(registry.Item) ([]byte, error) { return fmt.Appendf(nil, format, args...), nil }
}

func TestScale_ShowsReplicasAndSetsThemAlone(t *testing.T) {
	s := newStore(t, scaled())
	w := widget("a", 3)
	w.Labels = map[string]string{"app": "shop"}
	create(t, s, w)
	before, err := s.UpdateStatus(t.Context(), "default/a", func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Status.Phase = "Up"
		return w, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)

	r := scaleOf(t, s)
	it, err := r.Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.NoError(t, err)
	at, err := before.Value.CreationTimestamp.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a","namespace":"default","uid":%q,"resourceVersion":"%d","creationTimestamp":%s},
		"spec":{"replicas":3},"status":{"replicas":2,"selector":"of=a"}}`, before.Value.UID, before.Revision, at), body(t, it))

	it, created, err := r.Update(t.Context(), "default/a", setting(`{"kind":"Scale","apiVersion":"autoscaling/v1",
		"metadata":{"name":"a","namespace":"default","uid":%q,"resourceVersion":"%d","labels":{"app":"gone"}},"spec":{"replicas":5},"status":{"replicas":9}}`, before.Value.UID, before.Revision), registry.WriteOptions{})
	require.NoError(t, err)
	require.False(t, created)
	require.Contains(t, body(t, it), `"spec":{"replicas":5},"status":{"replicas":2,`)
	require.Equal(t, []any{int32(5), int32(2)}, it.AppendCells(nil))
	require.Equal(t, []string{"Desired", "Available"}, []string{r.Info().Columns[0].Name, r.Info().Columns[1].Name})
	after, err := s.Engine().Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.NoError(t, err)
	require.Equal(t, it.Revision(), after.Revision)
	want := before.Value
	want.Spec.Size, want.Generation = 5, before.Value.Generation+1
	require.Equal(t, want, after.Value, "nothing else has changed")

	same, _, err := r.Update(t.Context(), "default/a", setting(`{"metadata":{"name":"a"},"spec":{"replicas":5}}`), registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, it.Revision(), same.Revision(), "the same number is not a change")
	dry, _, err := r.Update(t.Context(), "default/a", setting(`{"metadata":{"name":"a"},"spec":{}}`), registry.WriteOptions{DryRun: true})
	require.NoError(t, err)
	require.Contains(t, body(t, dry), `"spec":{"replicas":0}`, "clients leave zero out")
	it, err = r.Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.NoError(t, err)
	require.Contains(t, body(t, it), `"spec":{"replicas":5}`)
}

func TestScale_RefusesWhatIsWrong(t *testing.T) {
	s := newStore(t, scaled())
	o := create(t, s, widget("a", 3))
	r := scaleOf(t, s)
	for text, want := range map[string]string{
		`{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"replicas":5}}`: "conflict",
		`{"metadata":{"name":"a","uid":"other"},"spec":{"replicas":5}}`:         "conflict",
		`{"metadata":{"name":"a"},"spec":{"replicas":-1}}`:                      "invalid",
		`{"metadata":{"name":"b"},"spec":{"replicas":5}}`:                       "bad request",
		`{"metadata":{"name":"a","namespace":"b"},"spec":{"replicas":5}}`:       "bad request",
		`{"metadata":{"name":"a"},"spec":{"replicas":5,"size":1}}`:              "bad request",
		`{"metadata":{"name":"a"},"spec":{"replicas":"5"}}`:                     "bad request",
		`{"metadata":{"name":"a"},"spec":{"replicas":3000000000}}`:              "bad request",
		`{"kind":"Widget","metadata":{"name":"a"},"spec":{"replicas":5}}`:       "bad request",
		`{"apiVersion":"v1","metadata":{"name":"a"},"spec":{"replicas":5}}`:     "bad request",
		`{"apiVersion":"a/b/c","metadata":{"name":"a"},"spec":{"replicas":5}}`:  "bad request",
		`nonsense`: "bad request",
	} {
		_, _, err := r.Update(t.Context(), "default/a", setting("%s", text), registry.WriteOptions{Validation: registry.RefuseUnknown})
		require.Equal(t, want, kindOf(err), "%s: %v", text, err)
	}
	_, _, err := r.Update(t.Context(), "default/b", setting(`{"metadata":{"name":"b"},"spec":{"replicas":5}}`), registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, err = r.Get(t.Context(), "default/b", engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, err = r.Create(t.Context(), "default", []byte(`{}`), registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrUnsupported)
	_, _, err = r.Delete(t.Context(), "default/a", registry.DeleteOptions{})
	require.ErrorIs(t, err, engine.ErrUnsupported)
	_, _, err = r.Apply(t.Context(), "default/a", []byte(`{}`), registry.WriteOptions{Manager: "m"})
	require.ErrorIs(t, err, engine.ErrUnsupported)
	now, err := s.Engine().Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.NoError(t, err)
	require.Equal(t, o.Revision, now.Revision)
}

// An object without a number has no scale to show, and a patch can give it one.
func TestScale_OfAnObjectWithoutReplicas(t *testing.T) {
	s := newStore(t, scaled())
	w := widget("a", 0)
	w.Spec.Color = "clear"
	create(t, s, w)
	r := scaleOf(t, s)
	_, err := r.Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.Equal(t, "invalid", kindOf(err))
	require.ErrorContains(t, err, "spec.replicas: Required value: the object has no number of replicas")
	patched := func(text string) (registry.Item, error) { return patchA(t, r, registry.MergePatch, text) }
	_, err = patched(`{"metadata":{"labels":{"app":"shop"}}}`)
	require.Equal(t, "bad request", kindOf(err))
	require.ErrorContains(t, err, "set spec.replicas")
	it, err := patched(`{"spec":{"replicas":2}}`)
	require.NoError(t, err)
	require.Contains(t, body(t, it), `"spec":{"replicas":2}`)
}

// The rules of the kind hold for a scale, too, and its admitters see the whole object.
func TestScale_ObeysTheKind(t *testing.T) {
	cfg := scaled()
	refused := errors.New("too many")
	var seen []string
	cfg.Admit = []registry.Admitter{registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
		seen = append(seen, fmt.Sprintf("%s %q %d", a.Operation, a.Subresource, a.Object.(*Widget).Spec.Size))
		if a.Object.(*Widget).Spec.Size > 7 {
			return refused
		}
		return nil
	})}
	s := newStore(t, cfg)
	create(t, s, widget("a", 3))
	_, _, err := scaleOf(t, s).Update(t.Context(), "default/a", setting(`{"metadata":{"name":"a"},"spec":{"replicas":8}}`), registry.WriteOptions{})
	require.ErrorIs(t, err, refused)
	require.Equal(t, []string{`CREATE "" 3`, `UPDATE "scale" 8`}, seen)
}

// SetReplicas may write through a pointer of the object, as in many kinds. Readers share the stored object,
// so that has a pointer of its own.
func TestScale_LeavesTheStoredObjectAlone(t *testing.T) {
	type pool struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Replicas          *int32 `json:"replicas"`
	}
	s := newStore(t, registry.Config[pool]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Pool"},
		Scale: &registry.Scale[pool]{
			Replicas:    func(p *pool) (int32, bool) { return *p.Replicas, true },
			SetReplicas: func(p *pool, n int32) { *p.Replicas = n },
		},
	})
	stored, err := s.Create(t.Context(), pool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Replicas: new(int32(3))}, registry.WriteOptions{})
	require.NoError(t, err)
	for _, dryRun := range []bool{true, false} {
		it, _, err := s.Resources()[1].Update(t.Context(), "default/a", setting(`{"metadata":{"name":"a"},"spec":{"replicas":5}}`), registry.WriteOptions{DryRun: dryRun})
		require.NoError(t, err)
		require.Contains(t, body(t, it), `"spec":{"replicas":5}`)
		require.EqualValues(t, 3, *stored.Value.Replicas)
	}
	_, _, err = s.Resources()[1].Update(t.Context(), "default/a", setting(`{"metadata":{"name":"a"},"spec":{"replicas":-1}}`), registry.WriteOptions{})
	require.Equal(t, "invalid", kindOf(err), "no kind may have fewer than none")
}

func TestScale_ContainsWhatPanicsAndWhatDoesNotSet(t *testing.T) {
	cfg := scaled()
	replicas := cfg.Scale.Replicas
	cfg.Scale.Replicas = func(w *Widget) (int32, bool) {
		if w.Spec.Size == 666 {
			panic("the number of the beast")
		}
		return replicas(w)
	}
	cfg.Scale.SetReplicas = func(w *Widget, n int32) {
		if n != 13 {
			w.Spec.Size = int(n)
		}
	}
	s := newStore(t, cfg)
	create(t, s, widget("a", 666))
	create(t, s, widget("b", 3))
	r := scaleOf(t, s)
	_, err := r.Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.ErrorIs(t, err, usercode.ErrPanic)
	_, _, err = r.Update(t.Context(), "default/b", setting(`{"metadata":{"name":"b"},"spec":{"replicas":666}}`), registry.WriteOptions{})
	require.ErrorIs(t, err, usercode.ErrPanic)
	_, _, err = r.Update(t.Context(), "default/b", setting(`{"metadata":{"name":"b"},"spec":{"replicas":13}}`), registry.WriteOptions{})
	require.Equal(t, "bad request", kindOf(err))
	cfg = scaled()
	cfg.Scale.SetReplicas = nil
	_, err = registry.New(cfg)
	require.ErrorIs(t, err, engine.ErrConfig)
	require.ErrorContains(t, err, "Scale has no function")
}
