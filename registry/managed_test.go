package registry_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

// applier is an Applier that merges nothing, and fails as the test demands.
type applier struct {
	decode, apply, update func() error
	now                   time.Time // in the entries of updates
}

func run(fail func() error) error {
	if fail == nil {
		return nil
	}
	return fail()
}

func (a *applier) Decode(text []byte) (config map[string]any, strict []error, err error) {
	if err := run(a.decode); err != nil {
		return nil, nil, err
	}
	return config, nil, json.Unmarshal(text, &config)
}

func (a *applier) Apply(live, config map[string]any, by registry.Manager, _ bool) (map[string]any, error) {
	meta := config["metadata"].(map[string]any)
	meta["managedFields"] = []any{map[string]any{"manager": by.Name, "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1"}}
	return map[string]any{"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": meta, "spec": config["spec"]}, run(a.apply)
}

func (a *applier) Update(_, _ map[string]any, by registry.Manager) ([]metav1.ManagedFieldsEntry, error) {
	return []metav1.ManagedFieldsEntry{{Manager: by.Name, Operation: "Update", APIVersion: "example.com/v1", FieldsType: "FieldsV1", Time: new(metav1.NewTime(a.now))}}, run(a.update)
}

func newStoreWith(t *testing.T, a *applier) *registry.Store[Widget] {
	cfg := config()
	cfg.Apply = func(kind registry.Kind, schema json.RawMessage) (registry.Applier, error) {
		require.Equal(t, "widgets", kind.Plural)
		require.True(t, json.Valid(schema))
		return a, nil
	}
	return newStore(t, cfg)
}

func manager(o *engine.Object[Widget]) string {
	if len(o.Value.ManagedFields) == 0 {
		return ""
	}
	return o.Value.ManagedFields[0].Manager
}

// An update of managed fields that fails or panics is a warning: they stay as they were,
// and the write is done.
func TestManagedFields_ThatCannotBeMadeStayAsTheyWere(t *testing.T) {
	a := &applier{}
	s := newStoreWith(t, a)
	var told []string
	opts := registry.WriteOptions{Manager: "one", Warn: func(text string) { told = append(told, text) }}
	o, err := s.Create(t.Context(), widget("a", 1), opts)
	require.NoError(t, err)
	require.Equal(t, "one", manager(o))
	opts.Manager = "two"
	for _, fail := range []func() error{func() error { return errors.New("no") }, func() error { panic("no") }} {
		a.update, told = fail, nil
		o, _, err = s.Update(t.Context(), o.Key, grow(1), opts)
		require.NoError(t, err)
		require.Equal(t, "one", manager(o))
		require.Len(t, told, 1)
		require.Contains(t, told[0], "metadata.managedFields stay as they were")
	}
	require.Equal(t, 3, o.Value.Spec.Size)
	told = nil
	_, _, err = s.Update(t.Context(), o.Key, grow(-100), opts)
	require.ErrorAs(t, err, new(*registry.InvalidError))
	require.Empty(t, told, "of a write that is not done")
	a.update = nil
	o, _, err = s.Update(t.Context(), o.Key, grow(0), opts)
	require.NoError(t, err)
	require.Equal(t, "two", manager(o))
}

// A controller that writes what is there already, again and again, would otherwise wake all that watch the object.
func TestManagedFields_OfAWriteWithoutAChangeAreNotNewer(t *testing.T) {
	a := &applier{now: time.Unix(1, 0)}
	s := newStoreWith(t, a)
	opts := registry.WriteOptions{Manager: "one"}
	o, err := s.Create(t.Context(), widget("a", 1), opts)
	require.NoError(t, err)
	a.now = time.Unix(2, 0)
	same, _, err := s.Update(t.Context(), o.Key, grow(0), opts)
	require.NoError(t, err)
	require.Equal(t, o.Revision, same.Revision)
	require.EqualValues(t, 1, same.Value.ManagedFields[0].Time.Unix())
	next, _, err := s.Update(t.Context(), o.Key, grow(1), opts)
	require.NoError(t, err)
	require.EqualValues(t, 2, next.Value.ManagedFields[0].Time.Unix())
}

func TestApply_FailuresOfTheApplierAreTold(t *testing.T) {
	a := &applier{}
	s := newStoreWith(t, a)
	say := func() error {
		_, _, err := s.Apply(t.Context(), "default/a", []byte(`{"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":1}}`), registry.WriteOptions{Manager: "one"})
		return err
	}
	require.NoError(t, say())
	no := errors.New("no")
	a.apply = func() error { return no }
	require.ErrorIs(t, say(), no)
	a.apply = func() error { panic("no") }
	require.ErrorIs(t, say(), usercode.ErrPanic)
	a.decode = func() error { return no }
	require.ErrorAs(t, say(), new(*registry.BadRequestError))
	a.decode = func() error { panic("no") }
	require.ErrorIs(t, say(), usercode.ErrPanic)

	cfg := config()
	cfg.Apply = func(registry.Kind, json.RawMessage) (registry.Applier, error) { return nil, no }
	_, err := registry.New(cfg)
	require.ErrorIs(t, err, engine.ErrConfig)
	require.ErrorContains(t, err, "Apply refuses the kind: no")
}
