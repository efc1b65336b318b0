package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
)

func TestApply_CreatesAndOwnsWhatItNames(t *testing.T) {
	g := newGears(t)
	o, created, err := g.store.Apply(t.Context(), "default/a", configuration(`"metadata":{"labels":{"app":"web"}},"spec":{"size":1}`), registry.WriteOptions{Manager: "one"})
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, "a default", o.Value.Name+" "+o.Value.Namespace)
	require.NotEmpty(t, o.Value.UID)
	require.Equal(t, "one Apply: metadata.labels.app spec.size", owners(t, &o.Value))
	o, created, err = g.store.Apply(t.Context(), "default/a", configuration(`"metadata":{"name":"a","labels":{"app":"web"}},"spec":{"size":2}`), registry.WriteOptions{Manager: "one"})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, int64(2), o.Value.Generation)
}

func TestApply_ConflictNamesFieldsAndManagersUntilForced(t *testing.T) {
	g := newGears(t)
	g.apply("one", `"spec":{"size":1,"color":"red"}`)
	_, err := g.try("two", `"spec":{"size":2,"color":"blue"}`)
	require.Equal(t, []string{".spec.color", ".spec.size"}, conflicts(t, err))
	require.ErrorContains(t, err, `conflicts with "one"`)
	kept, err := g.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.JSONEq(t, `{"size":1,"color":"red"}`, spec(t, kept))

	o := g.apply("two", `"spec":{"size":2}`, force)
	require.JSONEq(t, `{"size":2,"color":"red"}`, spec(t, o))
	require.Equal(t, "one Apply: spec.color\ntwo Apply: spec.size", owners(t, &o.Value))
	_, err = g.try("one", `"spec":{"size":1,"color":"red"}`)
	require.Equal(t, []string{".spec.size"}, conflicts(t, err))
}

func TestApply_FieldThatIsNoLongerNamedGoesUnlessOthersOwnIt(t *testing.T) {
	g := newGears(t)
	g.apply("one", `"spec":{"size":1,"color":"red","limits":{"a":1,"b":2}}`)
	o := g.apply("two", `"spec":{"color":"red","limits":{"b":2}}`)
	require.Equal(t, "one Apply: spec.color spec.limits.a spec.limits.b spec.size\ntwo Apply: spec.color spec.limits.b", owners(t, &o.Value))
	o = g.apply("one", `"spec":{"size":1}`)
	require.JSONEq(t, `{"size":1,"color":"red","limits":{"b":2}}`, spec(t, o), "two still owns color and b")
	o = g.apply("two", `"spec":{}`)
	require.JSONEq(t, `{"size":1}`, spec(t, o))
	require.Equal(t, "one Apply: spec.size\ntwo Apply: spec", owners(t, &o.Value))
}

func TestApply_UpdateByAnotherManagerTakesTheField(t *testing.T) {
	g := newGears(t)
	g.apply("one", `"spec":{"size":1,"color":"red"}`)
	o := g.update("editor", func(w *Gear) { w.Spec.Size = 5 })
	require.Equal(t, "editor Update: spec.size\none Apply: spec.color", owners(t, &o.Value))
	_, err := g.try("one", `"spec":{"size":1,"color":"red"}`)
	require.Equal(t, []string{".spec.size"}, conflicts(t, err))
	require.ErrorContains(t, err, `conflict with "editor" using example.com/v1`)
	o = g.apply("one", `"spec":{"color":"red"}`)
	require.Equal(t, 5, o.Value.Spec.Size, "one has lost the field, so it does not go with it")
	o = g.update("editor", func(w *Gear) { w.Spec.Color = "" })
	require.Equal(t, "editor Update: spec.size", owners(t, &o.Value), "what is removed has no owner")
}

// A Go type leaves out the empty map that is left, so its owner no longer has it.
func TestApply_OwnersOfWhatIsNotStoredAreInNoConflict(t *testing.T) {
	g := newGears(t)
	g.apply("anchor", `"spec":{"size":1}`)
	g.update("editor", func(w *Gear) { w.Spec.Limits = map[string]int{"b": 0} })
	g.apply("one", `"spec":{"limits":{"b":1}}`, force)
	o := g.apply("one", `"spec":{}`)
	require.JSONEq(t, `{"size":1}`, spec(t, o))
	o = g.apply("two", `"spec":{"limits":{"c":0}}`)
	require.JSONEq(t, `{"size":1,"limits":{"c":0}}`, spec(t, o))
	_, err := g.try("one", `"spec":{"size":2,"limits":{"c":1}}`)
	require.Equal(t, []string{".spec.limits.c", ".spec.size"}, conflicts(t, err), "what is stored keeps its owners")
}

func TestApply_ListsMergeByTheirType(t *testing.T) {
	g := newGears(t)
	g.apply("one", `"spec":{"teeth":[{"name":"x","length":1}],"tags":["a","b"],"order":["p"],"box":{"k":"1"}}`)
	o := g.apply("two", `"spec":{"teeth":[{"name":"y","length":2},{"name":"x","metal":"tin"}],"tags":["b","c"]}`)
	require.JSONEq(t, `{"teeth":[{"name":"y","length":2},{"name":"x","length":1,"metal":"tin"}],"tags":["a","b","c"],"order":["p"],"box":{"k":"1"}}`, spec(t, o))
	_, err := g.try("two", `"spec":{"teeth":[{"name":"x","length":9}]}`)
	require.Equal(t, []string{`.spec.teeth[name="x"].length`}, conflicts(t, err))
	_, err = g.try("two", `"spec":{"order":["p","q"],"box":{"other":"2"}}`)
	require.Equal(t, []string{".spec.box", ".spec.order"}, conflicts(t, err), "they are one field each")

	o = g.apply("one", `"spec":{"order":["p"],"box":{"k":"1"}}`)
	require.JSONEq(t, `{"teeth":[{"name":"y","length":2},{"name":"x","metal":"tin"}],"tags":["b","c"],"order":["p"],"box":{"k":"1"}}`, spec(t, o))
	o = g.apply("two", `"spec":{"tags":["c"]}`)
	require.JSONEq(t, `{"tags":["c"],"order":["p"],"box":{"k":"1"}}`, spec(t, o), "an item goes with its last owner")
	_, err = g.try("two", `"spec":{"tags":["c","c"]}`)
	require.ErrorAs(t, err, new(*registry.BadRequestError), "a set has no item twice")
}

// The conflicts of an error are in the order of the managers, which are in a map, and each manager's in that of its
// fields.
func TestApply_ConflictsHaveOneOrder(t *testing.T) {
	g := newGears(t)
	var want []registry.FieldConflict
	for _, manager := range []string{"a", "b", "c", "d"} {
		g.apply(manager, fmt.Sprintf(`"spec":{"limits":{"%s1":1,"%s2":1}}`, manager, manager))
		for _, n := range []string{"1", "2"} {
			want = append(want, registry.FieldConflict{Field: ".spec.limits." + manager + n, Message: fmt.Sprintf("conflict with %q", manager)})
		}
	}
	for range 20 {
		_, err := g.try("last", `"spec":{"limits":{"a1":2,"a2":2,"b1":2,"b2":2,"c1":2,"c2":2,"d1":2,"d2":2}}`)
		var conflict *registry.FieldConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, want, conflict.Conflicts)
	}
}

func TestApply_FinalizersAndOwnerReferencesMergeByItem(t *testing.T) {
	g := newGears(t)
	g.apply("one", `"metadata":{"finalizers":["example.com/one"],"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"1"}]}`)
	o := g.apply("two", `"metadata":{"finalizers":["example.com/two"],"ownerReferences":[{"apiVersion":"v1","kind":"Y","name":"y","uid":"2"}]}`)
	require.Equal(t, []string{"example.com/one", "example.com/two"}, o.Value.Finalizers)
	require.Len(t, o.Value.OwnerReferences, 2)
	o = g.apply("one", `"metadata":{}`)
	require.Equal(t, []string{"example.com/two"}, o.Value.Finalizers)
	require.Equal(t, "y", o.Value.OwnerReferences[0].Name)
}

func TestApply_StatusAndObjectLeaveEachOtherAlone(t *testing.T) {
	g := newGears(t)
	o := g.apply("one", `"spec":{"size":1},"status":{"phase":"No"}`)
	require.Empty(t, o.Value.Status.Phase)
	require.Equal(t, "one Apply: spec.size", owners(t, &o.Value))
	o, err := g.store.ApplyStatus(t.Context(), "default/a", configuration(`"spec":{"size":9},"status":{"phase":"Ready","turns":1}`), registry.WriteOptions{Manager: "one"})
	require.NoError(t, err)
	require.Equal(t, GearStatus{Turns: 1, Phase: "Ready"}, o.Value.Status)
	require.Equal(t, 1, o.Value.Spec.Size)
	require.Equal(t, "one Apply/status: status.phase status.turns\none Apply: spec.size", owners(t, &o.Value))
	o, err = g.store.UpdateStatus(t.Context(), "default/a", changing(func(w *Gear) { w.Status.Turns = 2 }), registry.WriteOptions{Manager: "wheel"})
	require.NoError(t, err)
	require.Equal(t, "one Apply/status: status.phase\none Apply: spec.size\nwheel Update/status: status.turns", owners(t, &o.Value))
	o = g.apply("one", `"spec":{"color":"red"}`)
	require.Equal(t, GearStatus{Turns: 2, Phase: "Ready"}, o.Value.Status)
	o, err = g.store.ApplyStatus(t.Context(), "default/a", configuration(`"metadata":{"labels":{"a":"b"}},"status":{"phase":"Ready"}`), registry.WriteOptions{Manager: "one"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b"}, o.Value.Labels, "the metadata is of both")
	require.Contains(t, owners(t, &o.Value), "one Apply/status: metadata.labels.a status.phase")

	_, err = g.store.ApplyStatus(t.Context(), "default/b", configuration(`"status":{"turns":1}`), registry.WriteOptions{Manager: "one"})
	require.ErrorIs(t, err, engine.ErrNotFound, "status creates nothing")
}

// What a write of the status leaves alone is not its manager's either.
func TestApply_StatusCanLeaveTheMetadataAlone(t *testing.T) {
	g := newGears(t, func(cfg *registry.Config[Gear]) { cfg.Strategy.StatusOnly = true })
	g.apply("one", `"metadata":{"annotations":{"x":"y"}},"spec":{"size":1}`)
	o, err := g.store.ApplyStatus(t.Context(), "default/a", configuration(`"metadata":{"name":"a","labels":{"a":"b"}},"status":{"phase":"Ready"}`), registry.WriteOptions{Manager: "two"})
	require.NoError(t, err)
	require.Empty(t, o.Value.Labels)
	require.Equal(t, map[string]string{"x": "y"}, o.Value.Annotations)
	require.Equal(t, "one Apply: metadata.annotations.x spec.size\ntwo Apply/status: status.phase", owners(t, &o.Value))

	g.update("admin", func(w *Gear) { w.ManagedFields = []metav1.ManagedFieldsEntry{} })
	o, err = g.store.ApplyStatus(t.Context(), "default/a", configuration(`"metadata":{"name":"a"},"status":{"phase":"Ready"}`), registry.WriteOptions{Manager: "two"})
	require.NoError(t, err)
	require.Equal(t, "before-first-apply Update/status: status.phase\ntwo Apply/status: status.phase", owners(t, &o.Value))
	g.apply("one", `"metadata":{"annotations":{"x":"z"}}`)
}

// Where the kind has no status subresource, its status is a field like any other.
func TestApply_StatusOfAKindWithoutTheSubresource(t *testing.T) {
	g := newGears(t, func(cfg *registry.Config[Gear]) { cfg.Kind.Status = false })
	o := g.apply("one", `"spec":{"size":1},"status":{"phase":"Ready"}`)
	require.Equal(t, "Ready", o.Value.Status.Phase)
	require.Equal(t, "one Apply: spec.size status.phase", owners(t, &o.Value))
	_, err := g.try("two", `"status":{"phase":"Up"}`)
	require.Equal(t, []string{".status.phase"}, conflicts(t, err))
	_, err = g.store.ApplyStatus(t.Context(), "default/a", configuration(`"status":{"phase":"Up"}`), registry.WriteOptions{Manager: "two", Force: true})
	require.ErrorIs(t, err, engine.ErrUnsupported)
}

func TestApply_WhatChangesNothingIsNotWritten(t *testing.T) {
	g := newGears(t)
	first := g.apply("one", `"spec":{"size":1,"teeth":[{"name":"x"}]}`)
	require.Equal(t, first.Revision, g.apply("one", `"spec":{"size":1,"teeth":[{"name":"x"}]}`).Revision)
	shared := g.apply("two", `"spec":{"size":1}`)
	require.Greater(t, shared.Revision, first.Revision, "a new owner is a change")
	require.Equal(t, shared.Revision, g.apply("one", `"spec":{"size":1,"teeth":[{"name":"x"}]}`).Revision)
	require.Equal(t, shared.Revision, g.apply("two", `"spec":{"size":1}`, force).Revision)
	require.Equal(t, shared.Revision, g.update("three", func(*Gear) {}).Revision)
}

func TestApply_DryRunChangesNothing(t *testing.T) {
	g := newGears(t)
	o := g.apply("one", `"spec":{"size":1}`, dryRun)
	require.Equal(t, 1, o.Value.Spec.Size)
	_, err := g.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
	first := g.apply("one", `"spec":{"size":1}`)
	o = g.apply("two", `"spec":{"size":2}`, force, dryRun)
	require.Equal(t, "two Apply: spec.size", owners(t, &o.Value))
	now, err := g.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, first, now)
	_, err = g.try("two", `"spec":{"size":2}`, dryRun)
	require.Equal(t, []string{".spec.size"}, conflicts(t, err))
}

func TestApply_RevisionAndUIDArePreconditions(t *testing.T) {
	g := newGears(t)
	first := g.apply("one", `"spec":{"size":1}`)
	second := g.apply("one", `"metadata":{"resourceVersion":"`+first.Revision.String()+`"},"spec":{"size":2}`)
	_, err := g.try("one", `"metadata":{"resourceVersion":"`+first.Revision.String()+`"},"spec":{"size":3}`)
	require.ErrorIs(t, err, engine.ErrConflict)
	require.False(t, errors.As(err, new(*registry.FieldConflictError)))
	_, err = g.try("one", `"metadata":{"uid":"other"},"spec":{"size":3}`)
	require.ErrorIs(t, err, engine.ErrConflict)
	_, err = g.try("one", `"metadata":{"uid":"`+string(second.Value.UID)+`"},"spec":{"size":3}`)
	require.NoError(t, err)
	_, _, err = g.store.Apply(t.Context(), "default/b", configuration(`"metadata":{"resourceVersion":"7"}`), registry.WriteOptions{Manager: "one"})
	require.ErrorIs(t, err, engine.ErrConflict, "one that is not there has no revision")
}

func TestApply_RefusesWhatItCannotMean(t *testing.T) {
	g := newGears(t)
	g.apply("one", `"spec":{"size":1}`)
	for _, text := range []string{
		``, `null`, `[]`, `"x"`, `{`, "a: [", "\t- x", "a: *b",
		`{"kind":"Gear","metadata":{"name":"a"}}`,
		`{"apiVersion":"example.com/v2","kind":"Gear"}`,
		`{"apiVersion":"example.com/v1","kind":"Cog"}`,
		string(configuration(`"metadata":[]`)),
		string(configuration(`"metadata":{"name":"b"}`)),
		string(configuration(`"metadata":{"namespace":"other"}`)),
		string(configuration(`"metadata":{"managedFields":[{}]}`)),
		string(configuration(`"metadata":{"labels":{"a":{}}}`)),
		string(configuration(`"spec":{"colour":"red"}`)),
		string(configuration(`"spec":{"size":"large"}`)),
		string(configuration(`"spec":{"teeth":[{"length":1}]}`)),
		string(configuration(`"spec":{"teeth":[{"name":"x"},{"name":"x"}]}`)),
		string(configuration(`"spec":7`)),
	} {
		_, _, err := g.store.Apply(t.Context(), "default/a", []byte(text), registry.WriteOptions{Manager: "one"})
		require.ErrorAs(t, err, new(*registry.BadRequestError), text)
	}
	_, err := g.try("", `"spec":{}`)
	require.ErrorAs(t, err, new(*registry.BadRequestError), "a manager is required")
	plain := newGears(t, func(c *registry.Config[Gear]) { c.Apply = nil })
	_, err = plain.try("one", `"spec":{}`)
	require.ErrorIs(t, err, engine.ErrUnsupported)
}

func TestApply_ReadsYAML(t *testing.T) {
	g := newGears(t)
	text := "# a gear\napiVersion: example.com/v1\nkind: Gear\nmetadata: {name: a}\nspec:\n  size: 3\n  tags: [x, 'y']\n"
	var warnings []string
	opts := registry.WriteOptions{Manager: "one", Warn: func(text string) { warnings = append(warnings, text) }}
	o, _, err := g.store.Apply(t.Context(), "default/a", []byte(text), opts)
	require.NoError(t, err)
	require.JSONEq(t, `{"size":3,"tags":["x","y"]}`, spec(t, o))
	require.Empty(t, warnings)
	for _, twice := range []string{text + "  size: 4\n", `{"apiVersion":"example.com/v1","kind":"Gear","spec":{"size":3,"size":4}}`} {
		opts.Validation = registry.WarnUnknown
		_, _, err = g.store.Apply(t.Context(), "default/a", []byte(twice), opts)
		require.NoError(t, err)
		require.Len(t, warnings, 1, "a field that is there twice is told")
		warnings = nil
		opts.Validation = registry.RefuseUnknown
		_, _, err = g.store.Apply(t.Context(), "default/a", []byte(twice), opts)
		require.ErrorAs(t, err, new(*registry.BadRequestError))
	}
}

// An alias repeats a value in three bytes, so that a short document could fill the memory.
func TestApply_RefusesYAMLWhoseAliasesMakeItLarge(t *testing.T) {
	g := newGears(t)
	apply := func(length, times int) (*engine.Object[Gear], error) {
		text := "apiVersion: example.com/v1\nkind: Gear\nspec:\n  color: &a " + strings.Repeat("x", length) + "\n  order: [*a" + strings.Repeat(",*a", times-1) + "]\n"
		o, _, err := g.store.Apply(t.Context(), "default/a", []byte(text), registry.WriteOptions{Manager: "one"})
		return o, err
	}
	o, err := apply(3, 2)
	require.NoError(t, err)
	require.JSONEq(t, `{"color":"xxx","order":["xxx","xxx"]}`, spec(t, o))
	_, err = apply(100_000, 50)
	require.ErrorAs(t, err, new(*registry.BadRequestError))
	require.ErrorContains(t, err, "its aliases make it larger than")
}

func TestApply_BeforeItFieldsBelongToNoManager(t *testing.T) {
	g := newGears(t)
	o, err := g.store.Create(t.Context(), Gear{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: GearSpec{Size: 1}}, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, "unknown Update: spec.size", owners(t, &o.Value))
	o = g.update("admin", func(w *Gear) { w.ManagedFields = []metav1.ManagedFieldsEntry{} })
	require.Empty(t, o.Value.ManagedFields, "an empty list takes the record back")
	o = g.update("editor", func(w *Gear) { w.Spec.Color = "red" })
	require.Empty(t, o.Value.ManagedFields, "without a record, updates begin none")
	o = g.apply("one", `"spec":{"color":"red"}`)
	require.Equal(t, "before-first-apply Update: spec.color spec.size\none Apply: spec.color", owners(t, &o.Value))
}

func TestUpdate_ManagedFieldsThatAreSentCountIfTheyCanBeRead(t *testing.T) {
	g := newGears(t)
	g.apply("one", `"spec":{"size":1,"color":"red"}`)
	o := g.update("editor", func(w *Gear) {
		w.ManagedFields[0].FieldsV1.SetRawString(`{"f:spec":{"f:size":{}}}`)
		w.ManagedFields[0].Time = nil // as clients may
	})
	require.Equal(t, "one Apply: spec.size", owners(t, &o.Value))
	o = g.update("editor", func(w *Gear) { w.ManagedFields = nil })
	require.Equal(t, "one Apply: spec.size", owners(t, &o.Value), "left out, they stay")
	o = g.update("editor", func(w *Gear) { w.ManagedFields[0].FieldsV1.SetRawString(`{"x:size":{}}`); w.Spec.Size = 2 })
	require.Equal(t, "editor Update: spec.size", owners(t, &o.Value), "what cannot be read counts as left out")
	o = g.update("editor", func(w *Gear) { w.ManagedFields = []metav1.ManagedFieldsEntry{{}} })
	require.Empty(t, o.Value.ManagedFields)
}

func TestUpdate_EntriesAreAtMostTen(t *testing.T) {
	g := newGears(t)
	g.apply("one", `"spec":{"size":1}`)
	var o *engine.Object[Gear]
	for i := range 15 {
		o = g.update(string(rune('a'+i)), func(w *Gear) {
			if w.Spec.Limits == nil {
				w.Spec.Limits = map[string]int{}
			}
			w.Spec.Limits[string(rune('a'+i))] = 1
		})
	}
	require.Len(t, o.Value.ManagedFields, 11, "ten updates, and the apply")
	require.Contains(t, owners(t, &o.Value), "ancient-changes Update: ")
}

func TestApply_EntriesOfAnotherVersionAreDropped(t *testing.T) {
	g := newGears(t)
	g.apply("one", `"spec":{"size":1,"color":"red"}`)
	g.apply("two", `"spec":{"limits":{"a":1}}`)
	o := g.update("editor", func(w *Gear) { w.ManagedFields[0].APIVersion = "example.com/v1beta1" })
	require.Equal(t, "two Apply: spec.limits.a", owners(t, &o.Value))
	o = g.apply("two", `"spec":{"size":2,"limits":{"a":1}}`)
	require.Equal(t, "two Apply: spec.limits.a spec.size", owners(t, &o.Value))
}

// Kubectl's first apply on the server, of what it has applied itself before, takes the
// fields over, and then removes those that are no longer in the manifest.
func TestApply_KubectlTakesOverFromItself(t *testing.T) {
	const annotation = "kubectl.kubernetes.io/last-applied-configuration"
	g := newGears(t)
	last := string(configuration(`"metadata":{"name":"a"},"spec":{"size":1}`))
	_, err := g.store.Create(t.Context(), Gear{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Annotations: map[string]string{annotation: last}}, Spec: GearSpec{Size: 1},
	}, registry.WriteOptions{Manager: "kubectl-client-side-apply"})
	require.NoError(t, err)
	_, err = g.try("other", `"spec":{"size":2}`)
	require.Equal(t, []string{".spec.size"}, conflicts(t, err))
	o := g.apply("kubectl", `"metadata":{"name":"a"},"spec":{"size":2}`)
	require.Equal(t, 2, o.Value.Spec.Size)
	require.Contains(t, o.Value.Annotations[annotation], `"size":2`)
}

func TestNew_RefusesASchemaThatCannotBeMergedBy(t *testing.T) {
	for _, schema := range []string{
		`{`, `{"type":"object","properties":{"spec":{"type":"array"}}}`, `{"type":"object","properties":{"spec":{"type":"thing"}}}`,
		`{"type":"object","properties":{"spec":{"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"map"}}}`,
	} {
		_, err := apply.New(config().Kind, []byte(schema))
		require.Error(t, err, schema)
		cfg := config()
		cfg.Schema = []byte(schema)
		_, err = registry.New(cfg)
		require.ErrorIs(t, err, engine.ErrConfig)
		_, err = apply.Deduced(config().Kind, []byte(schema))
		require.NoError(t, err)
	}
}

func TestDeduced_ListsAreAtomic(t *testing.T) {
	g := newGears(t, func(c *registry.Config[Gear]) { c.Apply = apply.Deduced })
	g.apply("one", `"spec":{"tags":["a"],"limits":{"a":1}}`)
	g.apply("two", `"spec":{"limits":{"b":1}}`)
	_, err := g.try("two", `"spec":{"tags":["b"]}`)
	require.Equal(t, []string{".spec.tags"}, conflicts(t, err))
}
