package apply_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
)

type Door struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Open  bool   `json:"open,omitempty"`
		Color string `json:"color,omitempty"`
	} `json:"spec"`
}

// Two managers each own a field of one door. If the second applies the first one's field,
// that is a conflict, until it forces it.
func Example() {
	ctx := context.Background()
	doors, err := registry.New(registry.Config[Door]{
		Kind:  registry.Kind{Group: "example.com", Version: "v1", Kind: "Door"},
		Apply: apply.New,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer doors.Close()
	say := func(manager, spec string, force bool) error {
		config := fmt.Sprintf("{apiVersion: example.com/v1, kind: Door, spec: %s}", spec)
		o, _, err := doors.Apply(ctx, "default/front", []byte(config), registry.WriteOptions{Manager: manager, Force: force})
		if err == nil {
			fmt.Printf("%s: open %v, color %q\n", manager, o.Value.Spec.Open, o.Value.Spec.Color)
		}
		return err
	}
	if err := say("painter", "{color: green}", false); err != nil {
		log.Fatal(err)
	}
	err = say("porter", "{open: true, color: red}", false)
	var conflict *registry.FieldConflictError
	if errors.As(err, &conflict) {
		fmt.Println("porter:", conflict)
	}
	if err := say("porter", "{open: true}", false); err != nil {
		log.Fatal(err)
	}
	if err := say("painter", "{color: white}", false); err != nil {
		log.Fatal(err)
	}
	if err := say("porter", "{}", false); err != nil {
		log.Fatal(err)
	}
	// Output:
	// painter: open false, color "green"
	// porter: Apply failed with 1 conflict: conflict with "painter": .spec.color
	// porter: open true, color "green"
	// painter: open true, color "white"
	// porter: open false, color "white"
}

// The types may come from elsewhere. Those of Kubernetes' own kinds are
// applyconfigurations.NewTypeConverter(scheme.Scheme), of client-go.
func ExampleWithTypes() {
	doors, err := registry.New(registry.Config[Door]{
		Kind:  registry.Kind{Group: "example.com", Version: "v1", Kind: "Door"},
		Apply: apply.WithTypes(managedfields.NewDeducedTypeConverter()),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer doors.Close()
	o, _, err := doors.Apply(context.Background(), "default/back",
		[]byte(`{"apiVersion":"example.com/v1","kind":"Door","spec":{"color":"blue"}}`), registry.WriteOptions{Manager: "painter"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(o.Value.Spec.Color, o.Value.ManagedFields[0].FieldsV1)
	// Output: blue {"f:spec":{".":{},"f:color":{}}}
}

// A schema of which nothing can be said merges by what is there.
func ExampleDeduced() {
	doors, err := registry.New(registry.Config[Door]{
		Kind:  registry.Kind{Group: "example.com", Version: "v1", Kind: "Door"},
		Apply: apply.Deduced,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer doors.Close()
	o, created, err := doors.Apply(context.Background(), "default/back",
		[]byte(`{"apiVersion":"example.com/v1","kind":"Door","spec":{"color":"blue"}}`), registry.WriteOptions{Manager: "painter"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(created, o.Value.Spec.Color, o.Value.ManagedFields[0].Manager)
	// Output: true blue painter
}

// A manager applies a field in one version, and no longer names it in another: the field goes.
func ExampleVersions() {
	const shape = `{"type":"object","properties":{"spec":{"type":"object","properties":{"color":{"type":"string"},"open":{"type":"boolean"}}}}}`
	schemas := map[string]json.RawMessage{"v1beta1": json.RawMessage(shape), "v1": json.RawMessage(shape)}
	live := map[string]any{"kind": "Door", "metadata": map[string]any{}}
	for _, step := range []struct{ version, spec string }{{"v1beta1", "{color: green, open: true}"}, {"v1", "{color: green}"}} {
		applier, err := apply.Versions(schemas)(registry.Kind{Group: "example.com", Version: step.version, Kind: "Door"}, schemas[step.version])
		if err != nil {
			log.Fatal(err)
		}
		config, _, err := applier.Decode([]byte("{apiVersion: example.com/" + step.version + ", kind: Door, spec: " + step.spec + "}"))
		if err != nil {
			log.Fatal(err)
		}
		live["apiVersion"] = "example.com/" + step.version // as a store of the version reads it
		if live, err = applier.Apply(live, config, registry.Manager{Name: "painter"}, false); err != nil {
			log.Fatal(err)
		}
		fmt.Println(step.version, live["spec"])
		live["metadata"].(map[string]any)["uid"] = "1" // it exists now
	}
	// Output:
	// v1beta1 map[color:green open:true]
	// v1 map[color:green]
}

// Two groups have the same doors, and one of them calls the color paint. A manager owns what it has applied by one
// group in the other one, too.
func ExampleForms() {
	now, old := schema.GroupVersion{Group: "example.com", Version: "v1"}, schema.GroupVersion{Group: "old.example.com", Version: "v1"}
	schemas := map[schema.GroupVersion]json.RawMessage{
		now: json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"}}}`),
		old: json.RawMessage(`{"type":"object","properties":{"paint":{"type":"string"}}}`),
	}
	inForm := func(door map[string]any, to schema.GroupVersion) (map[string]any, error) {
		converted, color := maps.Clone(door), cmp.Or(door["color"], door["paint"])
		delete(converted, "color")
		delete(converted, "paint")
		switch {
		case color != nil && to == now:
			converted["color"] = color
		case color != nil:
			converted["paint"] = color
		}
		converted["apiVersion"] = to.String()
		return converted, nil
	}
	forms := apply.Forms(schemas, inForm)
	live := map[string]any{"kind": "Door", "metadata": map[string]any{}}
	for _, step := range []struct {
		by             schema.GroupVersion
		manager, field string
	}{{old, "painter", "paint: green"}, {now, "porter", "color: red"}} {
		applier, err := forms(registry.Kind{Group: step.by.Group, Version: step.by.Version, Kind: "Door"}, schemas[step.by])
		if err != nil {
			log.Fatal(err)
		}
		config, _, err := applier.Decode([]byte("{apiVersion: " + step.by.String() + ", kind: Door, " + step.field + "}"))
		if err != nil {
			log.Fatal(err)
		}
		if live, err = inForm(live, step.by); err != nil { // as a store of the group reads it
			log.Fatal(err)
		}
		if live, err = applier.Apply(live, config, registry.Manager{Name: step.manager}, false); err != nil {
			fmt.Println(step.manager+":", err)
			return
		}
		fmt.Println(step.manager+":", live["paint"])
		live["metadata"].(map[string]any)["uid"] = "1" // it exists now
	}
	// Output:
	// painter: green
	// porter: Apply failed with 1 conflict: conflict with "painter": .paint
}
