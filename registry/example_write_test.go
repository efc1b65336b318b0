package registry_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
)

// gadgetConfig configures the kind of the examples.
func gadgetConfig() registry.Config[Gadget] {
	return registry.Config[Gadget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}}
}

// newGadgets opens a store with a gear of twelve teeth.
func newGadgets(cfg registry.Config[Gadget]) *registry.Store[Gadget] {
	gadgets, err := registry.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := gadgets.Create(context.Background(), gadget("gear", 12), registry.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	return gadgets
}

func gadget(name string, teeth int) Gadget {
	return Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Teeth: teeth}
}

// withTeeth returns the function of an update that sets the number of teeth.
func withTeeth(n int) func(*engine.Object[Gadget]) (Gadget, error) {
	return func(old *engine.Object[Gadget]) (Gadget, error) {
		next := old.Value
		next.Teeth = n
		return next, nil
	}
}

// The rules of a kind hold for every write. Wrong settings are refused before anything
// starts.
func ExampleNew() {
	cfg := gadgetConfig()
	cfg.Strategy = registry.Strategy[Gadget]{
		Default: func(g *Gadget) {
			if g.Teeth == 0 {
				g.Teeth = 8
			}
		},
		Validate: func(_ context.Context, g, _ *Gadget) field.ErrorList {
			if g.Teeth%2 == 1 {
				return field.ErrorList{field.Invalid(field.NewPath("teeth"), g.Teeth, "must be even")}
			}
			return nil
		},
	}
	gadgets, err := registry.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	o, err := gadgets.Create(context.Background(), gadget("gear", 0), registry.WriteOptions{})
	fmt.Println(o.Key, o.Value.Teeth, err)
	_, err = gadgets.Create(context.Background(), gadget("odd", 7), registry.WriteOptions{})
	fmt.Println(err)

	cfg.Kind.Version = "1"
	_, err = registry.New(cfg)
	var wrong *engine.ConfigError
	if errors.As(err, &wrong) {
		fmt.Println("wrong:", wrong.Field)
	}
	// Output:
	// default/gear 8 <nil>
	// Gadget "odd" is invalid: teeth: Invalid value: 7: must be even
	// wrong: Kind.Version
}

// A creation stamps what the store keeps, and fails if the name is taken.
func ExampleStore_Create() {
	gadgets, err := registry.New(gadgetConfig())
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	for range 2 {
		o, err := gadgets.Create(context.Background(), gadget("gear", 12), registry.WriteOptions{})
		if errors.Is(err, engine.ErrExists) {
			fmt.Println("there is one")
			continue
		}
		fmt.Println(o.Key, o.Value.UID != "", o.Value.CreationTimestamp.IsZero(), o.Value.Generation)
	}
	// Output:
	// default/gear true false 1
	// there is one
}

// A dry run does everything but store the object.
func ExampleWriteOptions_dryRun() {
	gadgets := newGadgets(gadgetConfig())
	defer gadgets.Close()
	o, _, err := gadgets.Update(context.Background(), "default/gear", withTeeth(24), registry.WriteOptions{DryRun: true})
	fmt.Println(o.Value.Teeth, o.Value.Generation, err)
	o, err = gadgets.Engine().Get(context.Background(), "default/gear", engine.GetOptions{})
	fmt.Println(o.Value.Teeth, o.Value.Generation, err)
	// Output:
	// 24 2 <nil>
	// 12 1 <nil>
}

// An update that is made from an older state is refused if it says so.
func ExampleStore_Update() {
	ctx := context.Background()
	gadgets := newGadgets(gadgetConfig())
	defer gadgets.Close()
	seen, err := gadgets.Engine().Get(ctx, "default/gear", engine.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, teeth := range []int{16, 24} {
		o, _, err := gadgets.Update(ctx, "default/gear", withTeeth(teeth), registry.WriteOptions{Revision: seen.Revision})
		if errors.Is(err, engine.ErrConflict) {
			fmt.Println("it has changed since")
			continue
		}
		fmt.Println(o.Value.Teeth, err)
	}
	// Output:
	// 16 <nil>
	// it has changed since
}

// A finalizer keeps an object until whatever it stands for is cleaned up. The update that
// removes the last one deletes the object.
func ExampleStore_Delete() {
	ctx := context.Background()
	gadgets, err := registry.New(gadgetConfig())
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	gear := gadget("gear", 12)
	gear.Finalizers = []string{"example.com/oil"}
	if _, err := gadgets.Create(ctx, gear, registry.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	o, gone, err := gadgets.Delete(ctx, "default/gear", registry.DeleteOptions{})
	fmt.Println("gone:", gone, "marked:", o.Value.DeletionTimestamp != nil, err)
	_, _, err = gadgets.Update(ctx, "default/gear", func(old *engine.Object[Gadget]) (Gadget, error) {
		next := old.Value
		next.Finalizers = nil
		return next, nil
	}, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = gadgets.Engine().Get(ctx, "default/gear", engine.GetOptions{})
	fmt.Println("gone:", errors.Is(err, engine.ErrNotFound))
	// Output:
	// gone: false marked: true <nil>
	// gone: true
}

// A garbage collector beside the server releases what the object owns, and then removes the finalizer,
// which deletes the object.
func ExampleDeleteOptions_propagation() {
	cfg := gadgetConfig()
	cfg.GarbageCollection = true
	gadgets, err := registry.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	gear, err := gadgets.Create(context.Background(), gadget("gear", 12), registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	marked, gone, err := gadgets.Delete(context.Background(), gear.Key, registry.DeleteOptions{Propagation: metav1.DeletePropagationOrphan})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("gone:", gone, "finalizers:", marked.Value.Finalizers)
	// Output:
	// gone: false finalizers: [orphan]
}

// Each manager owns the fields that it applies. Another one may take them by force.
func ExampleStore_Apply() {
	ctx := context.Background()
	cfg := gadgetConfig()
	cfg.Apply = apply.New
	gadgets, err := registry.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	config := func(teeth int) []byte {
		return fmt.Appendf(nil, "apiVersion: example.com/v1\nkind: Gadget\nteeth: %d\n", teeth)
	}
	o, created, err := gadgets.Apply(ctx, "default/gear", config(12), registry.WriteOptions{Manager: "workshop"})
	fmt.Println(o.Value.Teeth, created, err)

	var owned *registry.FieldConflictError
	_, _, err = gadgets.Apply(ctx, "default/gear", config(24), registry.WriteOptions{Manager: "customer"})
	if errors.As(err, &owned) {
		fmt.Println(owned.Conflicts[0].Field, owned.Conflicts[0].Message)
	}
	o, created, err = gadgets.Apply(ctx, "default/gear", config(24), registry.WriteOptions{Manager: "customer", Force: true})
	fmt.Println(o.Value.Teeth, created, err)
	// Output:
	// 12 true <nil>
	// .teeth conflict with "workshop"
	// 24 false <nil>
}

// The status is applied apart from the rest, of which nothing is taken.
func ExampleStore_ApplyStatus() {
	ctx := context.Background()
	valves, err := registry.New(registry.Config[Valve]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Valve", Status: true}, Apply: apply.New,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer valves.Close()
	opts := registry.WriteOptions{Manager: "gauge"}
	config := []byte(`{"apiVersion":"example.com/v1","kind":"Valve","spec":{"open":true},"status":{"pressure":7}}`)
	_, err = valves.ApplyStatus(ctx, "default/inlet", config, opts)
	fmt.Println("it creates nothing:", errors.Is(err, engine.ErrNotFound))

	inlet := Valve{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "inlet"}}
	if _, err := valves.Create(ctx, inlet, registry.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	o, err := valves.ApplyStatus(ctx, "default/inlet", config, opts)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("pressure:", o.Value.Status.Pressure, "open:", o.Value.Spec.Open)
	// Output:
	// it creates nothing: true
	// pressure: 7 open: false
}

// An admitter decides about the writes of all kinds that have it, and may change them.
func ExampleAdmitFunc() {
	cfg := gadgetConfig()
	cfg.Admit = []registry.Admitter{registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
		g, ok := a.Object.(*Gadget)
		switch {
		case !ok: // a deletion
			return nil
		case strings.HasPrefix(g.Name, "test-"):
			return errors.New("no tests here")
		}
		g.Labels = map[string]string{"admitted-by": "example"} // a new map: the old one may be shared
		return nil
	})}
	gadgets, err := registry.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	o, err := gadgets.Create(context.Background(), gadget("gear", 12), registry.WriteOptions{})
	fmt.Println(o.Labels, err)
	_, err = gadgets.Create(context.Background(), gadget("test-gear", 12), registry.WriteOptions{})
	var refused *registry.AdmissionError
	fmt.Println(errors.As(err, &refused), err)
	// Output:
	// admitted-by=example <nil>
	// true no tests here
}

// What is wrong and no reason to refuse an object is a warning for its writer.
func ExampleWarn() {
	cfg := gadgetConfig()
	cfg.Strategy.Validate = func(ctx context.Context, g, _ *Gadget) field.ErrorList {
		if g.Teeth%2 == 1 {
			registry.Warn(ctx, "an odd number of teeth wears out soon")
		}
		return nil
	}
	gadgets, err := registry.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	_, err = gadgets.Create(context.Background(), gadget("gear", 7), registry.WriteOptions{Warn: func(text string) { fmt.Println("warning:", text) }})
	fmt.Println(err)
	// Output:
	// warning: an odd number of teeth wears out soon
	// <nil>
}

// The size of a gadget changes by a subresource of its own, which only some users may write.
func ExampleStore_UpdatePart() {
	ctx := context.Background()
	cfg := gadgetConfig()
	cfg.Kind.Parts = []registry.Part{{Name: "size", Verbs: []string{"update"}}}
	cfg.Strategy.Prepare = func(ctx context.Context, g, old *Gadget) {
		if old != nil && registry.SubresourceOf(ctx) != "size" {
			g.Teeth = old.Teeth
		}
	}
	gadgets := newGadgets(cfg)
	defer gadgets.Close()
	larger := func(old *engine.Object[Gadget]) (Gadget, error) {
		g := old.Value
		g.Teeth++
		return g, nil
	}
	same, _, err := gadgets.Update(ctx, "default/gear", larger, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	next, err := gadgets.UpdatePart(ctx, "default/gear", "size", larger, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(same.Value.Teeth, next.Value.Teeth)
	// Output: 12 13
}
