package apply_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
)

// schemas are those of three versions: v1 has a field more than v1beta1, and v1alpha1 has size as text.
var schemas = map[string]json.RawMessage{
	"v1":       specSchema(`"size":{"type":"integer"},"color":{"type":"string"},"shape":{"type":"string"}`),
	"v1beta1":  specSchema(`"size":{"type":"integer"},"color":{"type":"string"}`),
	"v1alpha1": specSchema(`"size":{"type":"string"},"color":{"type":"string"}`),
}

func specSchema(properties string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"spec":{"type":"object","properties":{` + properties + `}}}}`)
}

// versioned is an object that is written in several versions.
type versioned struct {
	t    *testing.T
	live *unstructured.Unstructured
}

func newVersioned(t *testing.T) *versioned {
	return &versioned{t, in("v1", nil)}
}

func in(version string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	o.SetAPIVersion("example.com/" + version)
	o.SetKind("Gear")
	if spec != nil {
		o.Object["spec"] = spec
	}
	return o
}

func (v *versioned) applier(version string) registry.Applier {
	v.t.Helper()
	a, err := apply.Versions(schemas)(registry.Kind{Group: "example.com", Version: version, Kind: "Gear"}, schemas[version])
	require.NoError(v.t, err)
	return a
}

// seen is the object as it is read in a version, without the field that only v1 has.
func (v *versioned) seen(version string) *unstructured.Unstructured {
	o := v.live.DeepCopy()
	if version != "v1" {
		unstructured.RemoveNestedField(o.Object, "spec", "shape")
	}
	o.SetAPIVersion("example.com/" + version)
	return o
}

func (v *versioned) try(version, manager string, spec map[string]any) error {
	v.t.Helper()
	merged, err := v.applier(version).Apply(v.seen(version).Object, in(version, spec).Object, registry.Manager{Name: manager, At: time.Unix(1, 0)}, false)
	if err == nil {
		v.live = &unstructured.Unstructured{Object: merged}
		v.live.SetUID("1") // it exists from now on
	}
	return err
}

func (v *versioned) apply(version, manager string, spec map[string]any) {
	v.t.Helper()
	require.NoError(v.t, v.try(version, manager, spec))
}

func (v *versioned) update(version, manager string, spec map[string]any) {
	v.t.Helper()
	next := v.seen(version)
	next.Object["spec"] = spec
	entries, err := v.applier(version).Update(v.seen(version).Object, next.Object, registry.Manager{Name: manager, At: time.Unix(1, 0)})
	require.NoError(v.t, err)
	next.SetManagedFields(entries)
	v.live = next
}

// managers returns the managers with the versions by which they own fields.
func (v *versioned) managers() (all []string) {
	for _, e := range v.live.GetManagedFields() {
		all = append(all, e.Manager+" "+e.APIVersion+" "+e.FieldsV1.GetRawString())
	}
	return all
}

func TestVersions_AWriteInOneKeepsWhatIsOwnedInAnother(t *testing.T) {
	v := newVersioned(t)
	v.apply("v1beta1", "one", map[string]any{"size": int64(1), "color": "red"})
	v.update("v1", "editor", map[string]any{"size": int64(2), "color": "red", "shape": "round"})
	require.Equal(t, []string{
		`one example.com/v1beta1 {"f:spec":{"f:color":{}}}`,
		`editor example.com/v1 {"f:spec":{"f:shape":{},"f:size":{}}}`,
	}, v.managers())

	var conflict *registry.FieldConflictError
	require.ErrorAs(t, v.try("v1", "two", map[string]any{"color": "blue"}), &conflict, "by a field that is owned in another version")
	require.ErrorAs(t, v.try("v1beta1", "one", map[string]any{"size": int64(3), "color": "red"}), &conflict)
}

func TestVersions_AnApplyRemovesWhatItsManagerAppliedInAnother(t *testing.T) {
	v := newVersioned(t)
	v.apply("v1beta1", "one", map[string]any{"size": int64(1), "color": "red"})
	v.apply("v1", "two", map[string]any{"shape": "round"})
	v.apply("v1", "one", map[string]any{"size": int64(1)})
	require.Equal(t, map[string]any{"size": int64(1), "shape": "round"}, v.live.Object["spec"])
	v.apply("v1beta1", "two", map[string]any{"size": int64(1)})
	require.Equal(t, map[string]any{"size": int64(1)}, v.live.Object["spec"], "of a field that this version does not have")
}

func TestVersions_FieldsThatTheOneServedDoesNotHaveAreRefused(t *testing.T) {
	for range 20 { // the versions are in a map
		var bad *registry.BadRequestError
		require.ErrorAs(t, newVersioned(t).try("v1beta1", "one", map[string]any{"shape": "round"}), &bad)
	}
}

func TestVersions_EntriesOfOneThatTheObjectDoesNotFitAreDropped(t *testing.T) {
	v := newVersioned(t)
	v.apply("v1alpha1", "one", map[string]any{"color": "red"})
	v.update("v1", "editor", map[string]any{"size": int64(2), "color": "red"})
	require.Equal(t, []string{`editor example.com/v1 {"f:spec":{"f:size":{}}}`}, v.managers(), "size is a text in v1alpha1")
	require.NoError(t, v.try("v1", "two", map[string]any{"color": "blue"}))
}

// The versions of a kind share the types of all: each for itself would take memory by the square of their number.
func TestVersions_ShareTheirTypes(t *testing.T) {
	var properties []string
	for i := range 200 {
		properties = append(properties, fmt.Sprintf(`"field%d":{"type":"string"}`, i))
	}
	schemas := map[string]json.RawMessage{}
	for i := range 50 {
		schemas[fmt.Sprintf("v%d", i)] = json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ofVersion := apply.Versions(schemas)
	for version, schema := range schemas {
		_, err := ofVersion(registry.Kind{Group: "example.com", Version: version, Kind: "Gear"}, schema)
		require.NoError(t, err)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(300<<20))
}
