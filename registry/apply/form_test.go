package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
)

// Two groups have the same doors: one calls the color paint.
var (
	doorGroup = schema.GroupVersion{Group: "example.com", Version: "v1"}
	oldGroup  = schema.GroupVersion{Group: "old.example.com", Version: "v1"}
	doorForms = map[schema.GroupVersion]json.RawMessage{
		doorGroup: json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"},"open":{"type":"boolean"},"signs":{"type":"object","additionalProperties":{"type":"string"}}}}`),
		oldGroup:  json.RawMessage(`{"type":"object","properties":{"paint":{"type":"string"},"open":{"type":"boolean"},"marks":{"type":"object","additionalProperties":{"type":"string"}}}}`),
	}
)

var errNoForm = errors.New("it has no such form")

// renamed is a [apply.Convert] of doors.
func renamed(door map[string]any, to schema.GroupVersion) (map[string]any, error) {
	if door["color"] == "none" {
		return nil, errNoForm
	}
	door = maps.Clone(door)
	for now, old := range map[string]string{"color": "paint", "signs": "marks"} {
		from, into := old, now
		if to == oldGroup {
			from, into = now, old
		}
		if value, has := door[from]; has {
			delete(door, from)
			door[into] = value
		}
	}
	return door, nil
}

// door is an object of two groups.
type door struct {
	t    *testing.T
	live map[string]any
}

func newDoor(t *testing.T) *door {
	return &door{t, map[string]any{"apiVersion": doorGroup.String(), "kind": "Door", "metadata": map[string]any{"name": "a"}}}
}

// as returns the door as a group has it.
func (d *door) as(group schema.GroupVersion) map[string]any {
	if d.live["apiVersion"] == group.String() {
		return d.live
	}
	o, err := renamed(d.live, group)
	require.NoError(d.t, err)
	o["apiVersion"] = group.String()
	return o
}

func (d *door) applier(group schema.GroupVersion) registry.Applier {
	d.t.Helper()
	a, err := apply.Forms(doorForms, renamed)(registry.Kind{Group: group.Group, Version: group.Version, Kind: "Door"}, doorForms[group])
	require.NoError(d.t, err)
	return a
}

func (d *door) try(group schema.GroupVersion, manager, fields string) error {
	d.t.Helper()
	a := d.applier(group)
	config, _, err := a.Decode([]byte(`{"apiVersion":"` + group.String() + `","kind":"Door",` + fields + `}`))
	require.NoError(d.t, err)
	merged, err := a.Apply(d.as(group), config, registry.Manager{Name: manager, At: time.Unix(1, 0)}, false)
	if err == nil {
		d.live = merged
		d.live["metadata"].(map[string]any)["uid"] = "1" // it exists from now on
	}
	return err
}

func (d *door) apply(group schema.GroupVersion, manager, fields string) {
	d.t.Helper()
	require.NoError(d.t, d.try(group, manager, fields))
}

// set sets a field by an update.
func (d *door) set(group schema.GroupVersion, manager, field string, value any) {
	d.t.Helper()
	next := maps.Clone(d.as(group))
	next[field] = value
	entries, err := d.applier(group).Update(d.as(group), next, registry.Manager{Name: manager, At: time.Unix(1, 0)})
	require.NoError(d.t, err)
	o := &unstructured.Unstructured{Object: next}
	o.SetManagedFields(entries)
	d.live = o.Object
}

// managers returns the managers with the groups by which they own fields.
func (d *door) managers() (all []string) {
	for _, e := range (&unstructured.Unstructured{Object: d.live}).GetManagedFields() {
		all = append(all, e.Manager+" "+e.APIVersion+" "+e.FieldsV1.GetRawString())
	}
	return all
}

func TestForms_AWriteInOneKeepsWhatIsOwnedInAnother(t *testing.T) {
	d := newDoor(t)
	d.apply(oldGroup, "painter", `"paint":"green","open":true`)
	d.set(doorGroup, "porter", "open", false)
	require.Equal(t, []string{`painter old.example.com/v1 {"f:paint":{}}`, `porter example.com/v1 {"f:open":{}}`}, d.managers())
	var conflict *registry.FieldConflictError
	require.ErrorAs(t, d.try(doorGroup, "porter", `"color":"red"`), &conflict)
	require.ErrorContains(t, conflict, `conflict with "painter": .paint`)
	d.apply(doorGroup, "porter", `"color":"green"`)
	d.apply(doorGroup, "painter", `"open":false`)
	require.Equal(t, "green", d.live["color"], "it is the porter's, too")
	d.apply(oldGroup, "porter", `"open":false`)
	require.NotContains(t, d.live, "paint")
}

// The owners of what a Go type has not stored are in no conflict, by whatever group they own it.
func TestForms_OwnersOfWhatIsNotStoredAreInNoConflict(t *testing.T) {
	d := newDoor(t)
	d.apply(oldGroup, "painter", `"paint":"green","marks":{}`)
	delete(d.live, "marks")
	d.apply(doorGroup, "porter", `"signs":{"a":"b"}`)
	var conflict *registry.FieldConflictError
	require.ErrorAs(t, d.try(doorGroup, "porter", `"color":"red"`), &conflict, "this one is stored")
}

func TestForms_OneThatAnObjectDoesNotHaveOwnsNothing(t *testing.T) {
	d := newDoor(t)
	d.apply(oldGroup, "painter", `"paint":"green"`)
	d.live = d.as(doorGroup)
	d.live["color"] = "none"
	d.set(doorGroup, "porter", "open", true)
	require.Equal(t, []string{`porter example.com/v1 {"f:open":{}}`}, d.managers())
}

// A list merges in the form in which its owner is recorded, although it has another name there.
func TestForms_AListThatMergesInAnotherIsRefusedIfItIsTooLong(t *testing.T) {
	const list = `{"type":"object","properties":{"%s":{"type":"array","items":{"type":"string"}%s}}}`
	forms := map[schema.GroupVersion]json.RawMessage{
		doorGroup: json.RawMessage(fmt.Sprintf(list, "signs", "")),
		oldGroup:  json.RawMessage(fmt.Sprintf(list, "marks", `,"x-kubernetes-list-type":"set"`)),
	}
	a, err := apply.Forms(forms, renamed)(registry.Kind{Group: doorGroup.Group, Version: doorGroup.Version, Kind: "Door"}, forms[doorGroup])
	require.NoError(t, err)
	signs := make([]any, 25_000)
	for i, name := range descending(len(signs)) {
		signs[i] = name
	}
	d := newDoor(t)
	d.live["signs"] = signs
	_, err = a.Update(d.live, d.live, registry.Manager{Name: "porter"})
	require.ErrorContains(t, err, "too many")
}
