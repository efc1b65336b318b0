package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Programs without server-side apply do not link it, except for a few of its packages,
// which metadata imports already, and the parser of YAML, with which crd reads manifests.
func TestImports_RegistryAndServerDoWithoutIt(t *testing.T) {
	packages := dependencies(t, "../", "../crd", "../../serve")
	require.Contains(t, packages, "sigs.k8s.io/structured-merge-diff/v6/value", "the list must have what is there")
	for _, pkg := range packages {
		for _, unwanted := range []string{"typed", "merge", "fieldpath", "schema"} {
			require.NotEqual(t, "sigs.k8s.io/structured-merge-diff/v6/"+unwanted, pkg)
		}
		require.NotContains(t, pkg, "apimachinery/pkg/util/managedfields")
	}
	require.NotContains(t, dependencies(t, "../", "../../serve"), "sigs.k8s.io/yaml")
}

// dependencies returns the packages that a program with these has.
func dependencies(t *testing.T, of ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, of...)...).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// An entry has the second, by the engine's clock and not the system's, in which its manager last changed
// its fields.
func TestManagedFields_HaveTheTimeOfTheClock(t *testing.T) {
	for _, began := range []int64{1_000_000_000, 9_000_000_000} {
		at := clock.NewVirtual(time.Unix(began, 999))
		host, err := engine.NewHost(engine.HostConfig{Clock: at})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, host.Close()) })
		g := newGears(t, func(c *registry.Config[Gear]) { c.Engine.Host = host })
		for _, step := range []struct{ manager, spec, times string }{
			{"one", `"size":1`, "one 0"},
			{"two", `"size":1`, "one 0 two 3600"},
			{"one", `"size":1`, "one 0 two 3600"},
			{"two", `"size":1,"color":"red"`, "one 0 two 10800"},
			{"two", `"size":1,"color":"blue"`, "one 0 two 14400"},
		} {
			o := g.apply(step.manager, `"spec":{`+step.spec+`}`)
			at.Advance(time.Hour)
			var times []string
			for _, e := range o.Value.ManagedFields {
				times = append(times, fmt.Sprintf("%s %d", e.Manager, e.Time.Unix()-began))
			}
			require.Equal(t, step.times, strings.Join(times, " "))
		}
	}
}

func TestApply_AsksBeforeItCreates(t *testing.T) {
	g := newGears(t)
	refused := errors.New("may not create")
	guarded := func(o *registry.WriteOptions) {
		o.MayCreate = func(context.Context) error { return refused }
	}
	_, err := g.try("one", `"spec":{"size":1}`, guarded)
	require.ErrorIs(t, err, refused)
	g.apply("one", `"spec":{"size":1}`)
	g.apply("one", `"spec":{"size":2}`, guarded)
}

// A configuration with the uid of an object that is gone, as one that was read before has,
// does not make a new object of its name.
func TestApply_CreatesNoneForTheUIDOfAnother(t *testing.T) {
	g := newGears(t)
	_, err := g.try("one", `"metadata":{"uid":"gone"},"spec":{"size":1}`)
	require.ErrorIs(t, err, engine.ErrConflict)
	_, err = g.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
	o := g.apply("one", `"spec":{"size":1}`)
	g.apply("one", `"metadata":{"uid":"`+string(o.Value.UID)+`"},"spec":{"size":2}`)
}

// An apply that takes the last finalizer of an object, while another writer does so first,
// comes after that: it makes a new object.
func TestApply_AfterAnotherHasDeletedTheObject(t *testing.T) {
	stored, err := memory.New(registry.Schema(config()), memory.Options{})
	require.NoError(t, err)
	storage := faulty.New(stored, faulty.Options{})
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	g := newGears(t, func(c *registry.Config[Gear]) { c.Engine.Backend = storage })
	before := g.apply("one", `"metadata":{"finalizers":["example.com/wait"]}`)
	_, gone, err := g.store.Delete(t.Context(), before.Key, registry.DeleteOptions{})
	require.NoError(t, err)
	require.False(t, gone)
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpRemove}, Times: 1, Do: func(_ context.Context, _ *faulty.Call, proceed func()) {
		proceed() // the other's
		proceed()
	}})
	o, created, err := g.store.Apply(t.Context(), before.Key, configuration(`"spec":{"size":1}`), registry.WriteOptions{Manager: "one"})
	require.NoError(t, err)
	require.True(t, created)
	require.NotEqual(t, before.Value.UID, o.Value.UID)
	require.Nil(t, o.Value.DeletionTimestamp)
}

// Managers that apply at the same time do not undo each other.
func TestApply_ManagersAtTheSameTimeKeepTheirOwn(t *testing.T) {
	g := newGears(t)
	names := []string{"a", "b", "c", "d"}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			for i := range 10 {
				_, err := g.try(name, fmt.Sprintf(`"spec":{"limits":{%q:%d}}`, name, i))
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	all.Wait()
	o := g.apply("last", `"spec":{}`)
	require.Equal(t, map[string]int{"a": 9, "b": 9, "c": 9, "d": 9}, o.Value.Spec.Limits)
	for _, name := range names {
		require.Contains(t, owners(t, &o.Value), name+" Apply: spec.limits."+name)
	}
}

// What a kind prunes of an object for the merge, or for an update, stays in the object that is stored,
// which others read.
func TestApply_LeavesTheStoredObjectAlone(t *testing.T) {
	prunes := false
	g := newGears(t, func(c *registry.Config[Gear]) {
		c.Prune = func(o *Gear) []string {
			if _, present := o.Spec.Limits["old"]; present && o.Name == "a" && prunes {
				delete(o.Spec.Limits, "old")
			}
			return nil
		}
	})
	first, err := g.store.Create(t.Context(), Gear{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: GearSpec{Limits: map[string]int{"old": 1}},
	}, registry.WriteOptions{})
	require.NoError(t, err)
	prunes = true
	o, _, err := g.store.Update(t.Context(), first.Key, func(old *engine.Object[Gear]) (Gear, error) { return old.Value, nil }, registry.WriteOptions{DryRun: true})
	require.NoError(t, err)
	require.Empty(t, o.Value.Spec.Limits)
	require.Equal(t, map[string]int{"old": 1}, first.Value.Spec.Limits)
	g.apply("one", `"spec":{"limits":{"new":1}}`)
	require.Equal(t, map[string]int{"old": 1}, first.Value.Spec.Limits)
}

// An object that is too large with its managed fields is stored without them.
func TestManagedFields_AreLeftOutOfAnObjectThatIsTooLargeWithThem(t *testing.T) {
	cfg := config()
	schema := registry.Schema(cfg)
	stored, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	storage := faulty.New(stored, faulty.Options{})
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpPut}, Do: func(_ context.Context, c *faulty.Call, proceed func()) {
		if len(schema.Pointer(c.Draft).(*Gear).ManagedFields) > 0 {
			c.Err = &backend.TooLargeError{Size: 2, Limit: 1}
			return
		}
		proceed()
	}})
	g := newGears(t, func(c *registry.Config[Gear]) { c.Engine.Backend = storage })
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	o := g.apply("one", `"spec":{"size":1}`)
	require.Equal(t, 1, o.Value.Spec.Size)
	require.Empty(t, o.Value.ManagedFields)
	o = g.update("editor", func(w *Gear) { w.Spec.Size = 2 })
	require.Empty(t, o.Value.ManagedFields)
	created, err := g.store.Create(t.Context(), Gear{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}, registry.WriteOptions{Manager: "one"})
	require.NoError(t, err)
	require.Empty(t, created.Value.ManagedFields)
}

// A body has room for very many entries, none of which can be read.
func TestManagedFields_AreNotReadIfThereAreFarTooMany(t *testing.T) {
	g := newGears(t)
	g.apply("one", `"spec":{"size":1}`)
	text := `{"metadata":{"name":"a","managedFields":[` + strings.Repeat("{},", 100_000) + `{}]},"spec":{"size":1,"color":"red"}}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := g.store.Resources()[0].Update(t.Context(), "default/a", func(registry.Item) ([]byte, error) { return []byte(text), nil }, registry.WriteOptions{Manager: "editor"})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	o, err := g.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "editor Update: spec.color\none Apply: spec.size", owners(t, &o.Value))
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(128<<20))
}

// What is recorded of an object is nested deeper than the object is.
func TestManagedFields_OfTheDeepestObjectAreReadAgain(t *testing.T) {
	cfg := registry.Config[unstructured.Unstructured]{Kind: config().Kind, Apply: apply.New, Schema: json.RawMessage(`{"type":"object"}`)}
	s, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	format, err := registry.FormatOf(cfg)
	require.NoError(t, err)
	r := s.Resources()[0]
	patch, err := r.Info().ParsePatch(registry.MergePatch, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	require.NoError(t, err)
	for _, within := range []string{strings.Repeat(`{"a":`, 99) + "1" + strings.Repeat("}", 99), strings.Repeat("[", 99) + strings.Repeat("]", 99), strings.Repeat(`{"a":`, 98) + "{}" + strings.Repeat("}", 98)} {
		o, err := r.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":`+within+`}`), registry.WriteOptions{Manager: "one"})
		require.NoError(t, err)
		text, err := o.JSON()
		require.NoError(t, err)
		_, err = format.Decode(text)
		require.NoError(t, err)
		for _, next := range []func(registry.Item) ([]byte, error){
			func(registry.Item) ([]byte, error) { return text, nil },
			func(registry.Item) ([]byte, error) { return patch.Apply(text) },
		} {
			_, _, err = r.Update(t.Context(), o.Key(), next, registry.WriteOptions{Manager: "one"})
			require.NoError(t, err)
		}
		o, _, err = r.Apply(t.Context(), o.Key(), configuration(`"other":`+within), registry.WriteOptions{Manager: "two"})
		require.NoError(t, err)
		text, err = o.JSON()
		require.NoError(t, err)
		_, err = format.Decode(text)
		require.NoError(t, err)
		require.Contains(t, string(text), `"two"`)
		_, _, err = s.Delete(t.Context(), o.Key(), registry.DeleteOptions{})
		require.NoError(t, err)
	}
	for _, text := range []string{
		`{"metadata":{"managedFields":` + strings.Repeat("[", 104) + `]}}`, `{"other":{"managedFields":` + strings.Repeat("[", 99) + `]}}`,
		`{"metadata":{"managedFields":[],"other":` + strings.Repeat("[", 99) + `]}}`, `{"metadata":{"managedFields":[]},"other":` + strings.Repeat("[", 100) + `]}`,
	} {
		_, err = format.Decode([]byte(text))
		require.ErrorContains(t, err, "nested more than 100 deep")
	}
}

// A user who may only set the number of replicas cannot set the object's metadata through the scale.
func TestApply_OfAScaleLeavesTheMetadataAlone(t *testing.T) {
	g := newGears(t, func(c *registry.Config[Gear]) {
		c.Scale = &registry.Scale[Gear]{
			Replicas:    func(w *Gear) (int32, bool) { return int32(w.Spec.Size), true },
			SetReplicas: func(w *Gear, n int32) { w.Spec.Size = int(n) },
		}
	})
	before := g.apply("one", `"metadata":{"labels":{"a":"b"}},"spec":{"color":"red"}`)
	_, _, err := g.store.Resources()[2].Apply(t.Context(), "default/a", []byte(`{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":3},
		"metadata":{"name":"a","labels":{"c":"d"},"annotations":{"e":"f"},"finalizers":["example.com/wait"]}}`), registry.WriteOptions{Manager: "two"})
	require.NoError(t, err)
	after, err := g.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{Read: engine.Latest()})
	require.NoError(t, err)
	require.Equal(t, GearSpec{Size: 3, Color: "red"}, after.Value.Spec)
	require.Equal(t, before.Value.Labels, after.Value.Labels)
	require.Empty(t, after.Value.Annotations)
	require.Empty(t, after.Value.Finalizers)
	require.Equal(t, "one Apply: metadata.labels.a spec.color\ntwo Apply/scale: spec.size", owners(t, &after.Value))
}

// Kinds that are known only at run time merge by their schema, too, and fields that the
// schema does not know have no owner and are no hindrance.
func TestApply_ToObjectsWithoutAGoType(t *testing.T) {
	cfg := registry.Config[unstructured.Unstructured]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gear", Status: true}, Apply: apply.New,
		Schema: json.RawMessage(`{"type":"object","properties":{
			"spec":{"type":"object","properties":{
				"size":{"type":"integer"},
				"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port"],"items":{"type":"object","properties":{"port":{"type":"integer"},"name":{"type":"string"}}}},
				"any":{"x-kubernetes-preserve-unknown-fields":true},
				"target":{"x-kubernetes-int-or-string":true},
				"template":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}},
			"status":{"type":"object","properties":{"phase":{"type":"string"}}}}}`),
		Prune: func(o *unstructured.Unstructured) []string { delete(o.Object, "old"); return nil },
	}
	s, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	say := func(manager, body string) (map[string]any, error) {
		o, _, err := s.Apply(t.Context(), "default/a", configuration(body), registry.WriteOptions{Manager: manager})
		if err != nil {
			return nil, err
		}
		return o.Value.Object["spec"].(map[string]any), nil
	}
	_, err = say("one", `"spec":{"size":1,"ports":[{"port":80,"name":"web"}],"any":{"x":[1]},"target":"http","template":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}},"spec":{"x":1}}}`)
	require.NoError(t, err)
	got, err := say("two", `"spec":{"ports":[{"port":443}],"target":"http"}`)
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"port": int64(80), "name": "web"}, map[string]any{"port": int64(443)}}, got["ports"])
	_, err = say("two", `"spec":{"target":8080,"template":{"metadata":{"labels":{"a":"c"}}}}`)
	require.Equal(t, []string{".spec.target", ".spec.template.metadata.labels.a"}, conflicts(t, err))

	storeOld := func() {
		_, err := s.Engine().Update(t.Context(), "default/a", func(stored unstructured.Unstructured) (unstructured.Unstructured, error) {
			next := *stored.DeepCopy()
			next.Object["old"] = "what the schema had"
			return next, nil
		}, engine.UpdateOptions{})
		require.NoError(t, err)
	}
	storeOld()
	o, _, err := s.Update(t.Context(), "default/a", func(old *engine.Object[unstructured.Unstructured]) (unstructured.Unstructured, error) {
		next := *old.Value.DeepCopy()
		next.SetLabels(map[string]string{"a": "b"})
		return next, nil
	}, registry.WriteOptions{Manager: "editor", Warn: func(text string) { t.Error(text) }, Validation: registry.IgnoreUnknown})
	require.NoError(t, err)
	require.Contains(t, owners(t, &o.Value), "editor Update: metadata.labels.a")
	storeOld()
	_, err = say("one", `"spec":{"size":2}`)
	require.NoError(t, err)
}

// Objects within the object have metadata wherever they are, of which labels merge; and a schema
// without properties allows every field.
func TestApply_SchemasOfObjectsWithoutAGoType(t *testing.T) {
	const embedded = `{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"x":1}}`
	for schema, body := range map[string]string{
		`{"type":"object"}`: `"spec":{"size":1},"more":[{"x":{}}]`,
		`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`:                                    `"spec":{"size":1}`,
		`{"type":"object","properties":{"list":{"type":"array","items":` + embedded + `}}}`:                `"list":[` + pod + `]`,
		`{"type":"object","properties":{"map":{"type":"object","additionalProperties":` + embedded + `}}}`: `"map":{"one":` + pod + `}`,
	} {
		s, err := registry.New(registry.Config[unstructured.Unstructured]{
			Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gear"}, Apply: apply.New, Schema: json.RawMessage(schema),
		})
		require.NoError(t, err, schema)
		o, created, err := s.Apply(t.Context(), "default/a", configuration(body), registry.WriteOptions{Manager: "one"})
		require.NoError(t, err, schema)
		require.True(t, created)
		for field, want := range map[string]any{"spec": "size", "list": "labels", "map": "labels"} {
			if o.Value.Object[field] != nil {
				require.Contains(t, fmt.Sprint(o.Value.Object[field]), want)
			}
		}
		require.NotEmpty(t, owners(t, &o.Value))
		require.NoError(t, s.Close())
	}
}

// As in Kubernetes, unknown fields may be kept around metadata, but not in it.
func TestApply_OfUnknownMetadataIsRefusedWhereOtherFieldsAreKept(t *testing.T) {
	open := json.RawMessage(`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"pod":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}`)
	for _, applies := range []func(registry.Kind, json.RawMessage) (registry.Applier, error){apply.New, apply.Versions(map[string]json.RawMessage{"v1": open, "v2": open})} {
		a, err := applies(config().Kind, open)
		require.NoError(t, err)
		for body, refused := range map[string]bool{
			`"metadata":{"name":"a","labels":{"a":"b"}},"pod":{"metadata":{"labels":{"a":"b"}},"x":{"y":1}},"more":1`: false,
			`"metadata":{"name":"a","x":1}`: true, `"pod":{"metadata":{"x":1}}`: true, `"pod":{"metadata":{"ownerReferences":[{"uid":"u","x":1}]}}`: true,
		} {
			var desired map[string]any
			require.NoError(t, json.Unmarshal(configuration(body), &desired))
			_, err = a.Apply(in("v1", nil).Object, desired, registry.Manager{Name: "one"}, false)
			require.Equal(t, refused, errors.As(err, new(*registry.BadRequestError)), "%s: %v", body, err)
		}
	}
}

// An unknown field of metadata is refused or dropped. If it were stored, no apply could read
// the object any more.
func TestApply_ToObjectsThatWereSentWithUnknownMetadata(t *testing.T) {
	s, err := registry.New(registry.Config[unstructured.Unstructured]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gear"}, Apply: apply.New,
		Schema: json.RawMessage(`{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}`),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	body := []byte(`{"metadata":{"name":"a","clusterName":"c"},"spec":{"size":1}}`)
	r := s.Resources()[0]
	_, err = r.Create(t.Context(), "default", body, registry.WriteOptions{Validation: registry.RefuseUnknown})
	require.ErrorAs(t, err, new(*registry.BadRequestError))
	var warnings []string
	_, err = r.Create(t.Context(), "default", body, registry.WriteOptions{Warn: func(text string) { warnings = append(warnings, text) }})
	require.NoError(t, err)
	require.Equal(t, []string{`unknown field "metadata.clusterName"`}, warnings)
	o, _, err := s.Apply(t.Context(), "default/a", configuration(`"spec":{"size":2}`), registry.WriteOptions{Manager: "one", Force: true})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"size": int64(2)}, o.Value.Object["spec"])
	_, err = r.Create(t.Context(), "default", []byte(`{"metadata":{"name":"b","finalizers":[null,"example.com/wait"]}}`), registry.WriteOptions{})
	require.ErrorAs(t, err, new(*registry.InvalidError), "an empty finalizer")
}

// A quantity may be applied as a number, as kubectl sends it, and as a text.
func TestApply_OfQuantities(t *testing.T) {
	type tank struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Volume            resource.Quantity `json:"volume"`
	}
	s, err := registry.New(registry.Config[tank]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gear"}, Apply: apply.New})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for given, want := range map[string]string{`2`: "2", `0.5`: "500m", `"3Gi"`: "3Gi"} {
		o, _, err := s.Apply(t.Context(), "default/a", configuration(`"volume":`+given), registry.WriteOptions{Manager: "one"})
		require.NoError(t, err)
		require.Equal(t, want, o.Value.Volume.String())
	}
}

// Merging knows no integers of 2^63 or more. An apply that would round one is refused, even if it
// is of another field; a floating-point number may be as large as it likes.
func TestApply_RoundsNoInteger(t *testing.T) {
	type counter struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Count             uint64   `json:"count"`
		Mean              float64  `json:"mean"`
		Past              []uint64 `json:"past,omitempty"`
	}
	s, err := registry.New(registry.Config[counter]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gear"}, Apply: apply.New})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	say := func(body string) (*engine.Object[counter], error) {
		o, _, err := s.Apply(t.Context(), "default/a", configuration(body), registry.WriteOptions{Manager: "one"})
		return o, err
	}
	for _, body := range []string{`"count":9223372036854775809`, `"count":18446744073709551615`, `"past":[1,9223372036854775809]`, `"count":18446744073709551616`} {
		_, err := say(body)
		require.ErrorAs(t, err, new(*registry.BadRequestError), body)
		require.ErrorContains(t, err, "an integer of 2^63 or more", body)
	}
	o, err := say(`"count":9223372036854775807,"mean":9223372036854775808`)
	require.NoError(t, err)
	require.Equal(t, uint64(1<<63-1), o.Value.Count)
	require.Equal(t, "9.223372036854775808e+18", fmt.Sprintf("%.18e", o.Value.Mean))
	_, err = say(`"count":1`)
	require.NoError(t, err)
	_, _, err = s.Update(t.Context(), "default/a", func(old *engine.Object[counter]) (counter, error) {
		next := old.Value
		next.Count = 1<<63 + 1
		return next, nil
	}, registry.WriteOptions{Manager: "two"})
	require.NoError(t, err)
	_, err = say(`"mean":1`)
	require.ErrorContains(t, err, "an integer of 2^63 or more")
}

// An object that was stored under another schema cannot be merged. That is not a failure of
// storage, after which a client would try again.
func TestApply_ToAnObjectThatDoesNotFitTheSchema(t *testing.T) {
	s, err := registry.New(registry.Config[unstructured.Unstructured]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gear"}, Apply: apply.New,
		Schema: json.RawMessage(`{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}`),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := s.Resources()[0]
	_, err = r.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":"large"}}`), registry.WriteOptions{})
	require.NoError(t, err)
	_, _, err = s.Apply(t.Context(), "default/a", configuration(`"spec":{"size":2}`), registry.WriteOptions{Manager: "one", Force: true})
	require.True(t, apierrors.IsInternalError(err), "%v", err)
	require.ErrorContains(t, err, "the stored object does not merge")
	require.ErrorContains(t, err, ".spec.size: expected numeric")
}
