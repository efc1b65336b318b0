package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func TestCreate_StampsWhatTheServerOwns(t *testing.T) {
	s := newStore(t, config())
	w := widget("a", 1)
	w.SetSelfLink("/mine")
	w.UID, w.Generation, w.ResourceVersion = "mine", 7, "0"
	w.DeletionTimestamp = &metav1.Time{}
	w.Status.Phase = "Claimed"
	o := create(t, s, w)
	require.Equal(t, "default/a", o.Key)
	require.Len(t, string(o.Value.UID), 36)
	require.NotEqual(t, types.UID("mine"), o.Value.UID)
	require.EqualValues(t, 1, o.Value.Generation)
	require.False(t, o.Value.CreationTimestamp.IsZero())
	require.Zero(t, o.Value.CreationTimestamp.Nanosecond())
	require.Nil(t, o.Value.DeletionTimestamp)
	require.Empty(t, o.Value.GetSelfLink())
	require.Empty(t, o.Value.ResourceVersion)
	require.Empty(t, o.Value.Status.Phase, "a status is not created with the object")
	require.Equal(t, "grey", o.Value.Spec.Color, "defaults apply in the process, too")
	require.Equal(t, "example.com/v1", o.Value.APIVersion)
	require.Equal(t, "Widget", o.Value.Kind)
}

func TestCreate_RefusesWhatIsWrong(t *testing.T) {
	s := newStore(t, config())
	create(t, s, widget("taken", 1))
	_, err := s.Create(t.Context(), widget("taken", 1), registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrExists)

	bad := widget("Upper_Case", -1)
	_, err = s.Create(t.Context(), bad, registry.WriteOptions{})
	var invalid *registry.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Errors, 2, "metadata and spec in one answer")
	require.Equal(t, "metadata.name", invalid.Errors[0].Field)
	require.Equal(t, "spec.size", invalid.Errors[1].Field)

	bad = widget("a", 1)
	bad.ResourceVersion = "7"
	_, err = s.Create(t.Context(), bad, registry.WriteOptions{})
	require.ErrorAs(t, err, new(*registry.BadRequestError))
	_, err = s.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, registry.WriteOptions{})
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "metadata.namespace", invalid.Errors[0].Field)
}

func TestNamespace_IsThatOfTheRequest(t *testing.T) {
	body := []byte(`{"metadata":{"name":"a","namespace":"other"},"spec":{"size":1}}`)
	r := newStore(t, config()).Resources()[0]
	_, err := r.Create(t.Context(), "default", body, registry.WriteOptions{})
	require.ErrorAs(t, err, new(*registry.BadRequestError))
	require.ErrorContains(t, err, "does not match the namespace sent on the request")

	cfg := config()
	cfg.Kind.ClusterScoped = true
	r = newStore(t, cfg).Resources()[0]
	it, err := r.Create(t.Context(), "default", body, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, "a", it.Key())
	require.Empty(t, it.Meta().GetNamespace(), "a cluster-scoped object has none, whatever its writer says")
	it, _, err = r.Update(t.Context(), "a", func(registry.Item) ([]byte, error) { return body, nil }, registry.WriteOptions{})
	require.NoError(t, err)
	require.Empty(t, it.Meta().GetNamespace())
}

func TestCreate_GeneratesNames(t *testing.T) {
	s := newStore(t, config())
	w := widget("", 1)
	w.GenerateName = strings.Repeat("a", 62) + "-"
	seen := map[string]bool{}
	for range 20 {
		o := create(t, s, w)
		require.Regexp(t, `^a{58}[bcdfghjklmnpqrstvwxz2456789]{5}$`, o.Value.Name)
		require.False(t, seen[o.Value.Name])
		seen[o.Value.Name] = true
	}
}

// The object of a name that was taken has been made ready for storage, and so that of the next name
// must begin with what the writer has sent.
func TestCreate_EachGeneratedNameStartsAnew(t *testing.T) {
	cfg := config()
	attempts := 0
	cfg.Strategy.Prepare = func(_ context.Context, w, _ *Widget) {
		if attempts++; attempts < 4 {
			w.Name = "taken"
		}
		w.Spec.Size++
	}
	cfg.Strategy.Canonicalize = func(w *Widget) { w.Spec.Color = "dark " + w.Spec.Color }
	s := newStore(t, cfg)
	w := widget("", 1)
	w.GenerateName = "x-"
	create(t, s, w)
	o := create(t, s, w)
	require.Equal(t, 4, attempts)
	require.Equal(t, WidgetSpec{Size: 2, Color: "dark grey"}, o.Value.Spec)
}

func TestCreate_GivesUpGeneratingWhenEveryNameIsTaken(t *testing.T) {
	cfg := config()
	attempts := 0
	cfg.Strategy.Prepare = func(_ context.Context, w, old *Widget) {
		attempts++
		w.Name = "always-this"
	}
	s := newStore(t, cfg)
	w := widget("", 1)
	w.GenerateName = "x-"
	create(t, s, w)
	attempts = 0
	_, err := s.Create(t.Context(), w, registry.WriteOptions{})
	require.ErrorIs(t, err, engine.ErrExists)
	require.ErrorAs(t, err, new(*registry.GeneratedNameError))
	require.Equal(t, 8, attempts)
}

// Owner references that are equal in all their fields are one; others of the same owner are
// kept.
func TestWrites_DropRepeatedOwnerReferences(t *testing.T) {
	s := newStore(t, config())
	yes, also, no := true, true, false
	once := metav1.OwnerReference{APIVersion: "v1", Kind: "Box", Name: "box", UID: "1"}
	again, controls, likewise, holds, newer := once, once, once, once, once
	controls.Controller, likewise.Controller, holds.BlockOwnerDeletion, newer.APIVersion = &yes, &also, &no, "v2"
	var warnings []string
	opts := registry.WriteOptions{Warn: func(text string) { warnings = append(warnings, text) }}
	w := widget("a", 1)
	w.OwnerReferences = []metav1.OwnerReference{once, again, controls, likewise, holds, newer}
	o, err := s.Create(t.Context(), w, opts)
	require.NoError(t, err)
	require.Equal(t, []metav1.OwnerReference{once, controls, holds, newer}, o.Value.OwnerReferences)
	require.Len(t, warnings, 1)
	o, _, err = s.Update(t.Context(), o.Key, func(old *engine.Object[Widget]) (Widget, error) {
		next := old.Value
		next.OwnerReferences = []metav1.OwnerReference{newer, once, newer}
		return next, nil
	}, opts)
	require.NoError(t, err)
	require.Equal(t, []metav1.OwnerReference{newer, once}, o.Value.OwnerReferences)
	require.Len(t, warnings, 2)
}

func TestDryRun_StoresNothing(t *testing.T) {
	s := newStore(t, config())
	dry := registry.WriteOptions{DryRun: true}
	o, err := s.Create(t.Context(), widget("a", 1), dry)
	require.NoError(t, err)
	require.Len(t, string(o.Value.UID), 36)
	require.Zero(t, o.Revision)
	stored := create(t, s, widget("a", 1))
	_, err = s.Create(t.Context(), widget("a", 1), dry)
	require.ErrorIs(t, err, engine.ErrExists)
	revised := widget("b", 1)
	revised.ResourceVersion = "7"
	_, err = s.Create(t.Context(), revised, dry)
	require.ErrorContains(t, err, "resourceVersion should not be set", "as the creation itself says")
	next, _, err := s.Update(t.Context(), "default/a", grow(4), dry)
	require.NoError(t, err)
	require.Equal(t, 5, next.Value.Spec.Size)
	require.Equal(t, stored.Revision, next.Revision)
	_, gone, err := s.Delete(t.Context(), "default/a", registry.DeleteOptions{DryRun: true})
	require.NoError(t, err)
	require.True(t, gone)
	still, err := s.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.Same(t, stored, still)
}

// A dry run returns the object as it would be stored, with its labels and fields.
func TestDryRun_AnswersAreWholeObjects(t *testing.T) {
	s := newStore(t, config())
	dry := registry.WriteOptions{DryRun: true}
	w := finalized("a")
	w.Labels, w.Spec.Color = map[string]string{"app": "web"}, "red"
	made, err := s.Create(t.Context(), w, dry)
	require.NoError(t, err)
	require.Equal(t, "web", made.Labels.Get("app"))
	stored := create(t, s, w)
	require.Equal(t, stored.Fields, made.Fields)
	next, _, err := s.Update(t.Context(), stored.Key, func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Labels, w.Spec.Color = map[string]string{"app": "db"}, "blue"
		return w, nil
	}, dry)
	require.NoError(t, err)
	require.Equal(t, "db", next.Labels.Get("app"))
	require.Contains(t, next.Fields, "blue")
	require.Equal(t, stored.Created, next.Created)
	marked, _, err := s.Delete(t.Context(), stored.Key, registry.DeleteOptions{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, stored.Labels, marked.Labels)
	require.Equal(t, stored.Created, marked.Created)
}

// While storage fails, a dry run does not know whether the name is free.
func TestDryRun_FailsAsStorageDoes(t *testing.T) {
	cfg := config()
	stored, err := memory.New(registry.Schema(cfg), memory.Options{})
	require.NoError(t, err)
	storage := faulty.New(stored, faulty.Options{})
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	cfg.Engine.Backend = storage
	s := newStore(t, cfg)
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpGet}, Do: faulty.Fail(nil)})
	_, err = s.Create(t.Context(), widget("a", 1), registry.WriteOptions{DryRun: true})
	require.ErrorIs(t, err, faulty.ErrInjected)
}

// Validation may find what is only worth a warning, in a write that it refuses, too. The context of
// no validation has no writer to warn.
func TestWarn_ReachesTheWriterFromValidation(t *testing.T) {
	cfg := config()
	validate := cfg.Strategy.Validate
	cfg.Strategy.Validate = func(ctx context.Context, w, old *Widget) field.ErrorList {
		registry.Warn(ctx, fmt.Sprintf("size %d", w.Spec.Size))
		return validate(ctx, w, old)
	}
	s := newStore(t, cfg)
	var warnings []string
	opts := registry.WriteOptions{Warn: func(text string) { warnings = append(warnings, text) }}
	_, err := s.Create(t.Context(), widget("a", 1), opts)
	require.NoError(t, err)
	_, _, err = s.Update(t.Context(), "default/a", grow(-3), opts)
	require.ErrorContains(t, err, "must not be negative")
	require.Equal(t, []string{"size 1", "size -2"}, warnings)
	_, _, err = s.Update(t.Context(), "default/a", grow(3), registry.WriteOptions{})
	require.NoError(t, err, "this writer takes no warnings")
	registry.Warn(t.Context(), "nothing")
}
