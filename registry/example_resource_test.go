package registry_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Reads, watches and informers use the engine below a store. A read of its cache sees a write
// once the cache has reached the write's revision.
func ExampleStore_Engine() {
	ctx := context.Background()
	gadgets, err := registry.New(gadgetConfig())
	if err != nil {
		log.Fatal(err)
	}
	defer gadgets.Close()
	gear, err := gadgets.Create(ctx, gadget("gear", 12), registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if err := gadgets.Engine().WaitForRevision(ctx, gear.Revision); err != nil {
		log.Fatal(err)
	}
	list, err := gadgets.Engine().List(ctx, engine.ListOptions{Fields: "metadata.name=gear", Read: engine.Cached()})
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range list.Items {
		fmt.Println(o.Key, o.Value.Teeth)
	}
	// Output: default/gear 12
}

// Close ends the watches of a store. Storage that the store was given stays open, with the
// objects, for another store.
func ExampleStore_Close() {
	ctx := context.Background()
	cfg := gadgetConfig()
	storage, err := memory.New(registry.Schema(cfg), memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer storage.Close()
	cfg.Engine.Backend = storage
	gadgets := newGadgets(cfg)
	w, err := gadgets.Engine().Watch(ctx, engine.WatchOptions{Name: "audit"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gadgets.Close(), w.Err())
	_, err = gadgets.Create(ctx, gadget("wheel", 36), registry.WriteOptions{})
	fmt.Println(err)

	again, err := registry.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	gear, err := again.Engine().Get(ctx, "default/gear", engine.GetOptions{})
	fmt.Println(gear.Value.Teeth, err)
	// Output:
	// <nil> audit: engine closed
	// engine closed
	// 12 <nil>
}

// A resource has bodies and states as JSON, as a server needs them, under the same rules.
func ExampleStore_Resources() {
	ctx := context.Background()
	gadgets := newGadgets(gadgetConfig())
	defer gadgets.Close()
	r := gadgets.Resources()[0]
	fmt.Println(r.Info().Kind.Plural, strings.Join(r.Info().Verbs, " "))

	wheel, err := r.Create(ctx, "default", []byte(`{"metadata":{"name":"wheel"},"teeth":36}`), registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	page, err := r.List(ctx, engine.ListOptions{Read: engine.NotOlderThan(wheel.Revision())})
	if err != nil {
		log.Fatal(err)
	}
	for i := range page.Len() {
		fmt.Println(page.Item(i).Key(), page.Item(i).Meta().GetGeneration())
	}
	_, err = r.Create(ctx, "default", []byte(`{"metadata":{"name":"worm"},"tooth":1}`), registry.WriteOptions{Validation: registry.RefuseUnknown})
	fmt.Println(err)
	// Output:
	// gadgets create delete deletecollection get list patch update watch
	// default/gear 1
	// default/wheel 1
	// strict decoding error: unknown field "tooth"
}

// kept is a kind whose objects cannot be deleted while they turn.
type kept struct{ registry.Resource }

func (k kept) Delete(ctx context.Context, key string, opts registry.DeleteOptions) (registry.Item, bool, error) {
	if key == "default/gear" {
		return registry.Item{}, false, &registry.BadRequestError{Reason: "the gear is turning"}
	}
	return k.Resource.Delete(ctx, key, opts)
}

// Other rules for a kind that is served: a Resource has the methods of the one that it embeds.
func ExampleResource() {
	ctx := context.Background()
	gadgets := newGadgets(gadgetConfig())
	defer gadgets.Close()
	var r registry.Resource = kept{gadgets.Resources()[0]}
	_, _, err := r.Delete(ctx, "default/gear", registry.DeleteOptions{})
	fmt.Println(err)
	gear, err := r.Get(ctx, "default/gear", engine.GetOptions{})
	fmt.Println(gear.Key(), err)
	// Output:
	// the gear is turning
	// default/gear <nil>
}

// Autoscalers and kubectl scale need not know the kind to change its number of replicas.
func ExampleScale() {
	ctx := context.Background()
	cfg := gadgetConfig()
	cfg.Scale = &registry.Scale[Gadget]{
		Replicas:    func(g *Gadget) (int32, bool) { return int32(g.Teeth), true },
		SetReplicas: func(g *Gadget, n int32) { g.Teeth = int(n) },
	}
	gadgets := newGadgets(cfg)
	defer gadgets.Close()
	scale := gadgets.Resources()[1]
	fmt.Println(scale.Info().Subresource, scale.Info().ObjectKind().GroupVersionKind())
	_, _, err := scale.Update(ctx, "default/gear", func(registry.Item) ([]byte, error) {
		return []byte(`{"metadata":{"name":"gear"},"spec":{"replicas":24}}`), nil
	}, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	o, err := gadgets.Engine().Get(ctx, "default/gear", engine.GetOptions{})
	fmt.Println(o.Value.Teeth, err)
	// Output:
	// scale autoscaling/v1, Kind=Scale
	// 24 <nil>
}

// A patch is parsed once, and applied to each state that an update meets.
func ExampleParsePatch() {
	ctx := context.Background()
	gadgets := newGadgets(gadgetConfig())
	defer gadgets.Close()
	patch, err := registry.ParsePatch(registry.MergePatch, []byte(`{"teeth":24}`))
	if err != nil {
		log.Fatal(err)
	}
	_, _, err = gadgets.Resources()[0].Update(ctx, "default/gear", func(live registry.Item) ([]byte, error) {
		document, err := live.JSON()
		if err != nil {
			return nil, err
		}
		return patch.Apply(document)
	}, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	o, err := gadgets.Engine().Get(ctx, "default/gear", engine.GetOptions{})
	fmt.Println(o.Value.Teeth, err)
	// Output: 24 <nil>
}

// A patch works on any document.
func ExamplePatch_Apply() {
	patch, err := registry.ParsePatch(registry.JSONPatch, []byte(`[
		{"op":"test","path":"/teeth","value":12},
		{"op":"replace","path":"/teeth","value":24}
	]`))
	if err != nil {
		log.Fatal(err)
	}
	for _, document := range []string{`{"teeth":12}`, `{"teeth":8}`} {
		patched, err := patch.Apply([]byte(document))
		fmt.Println(string(patched), err != nil)
	}
	// Output:
	// {"teeth":24} false
	//  true
}

// Storage that is given to a store needs the schema of the kind.
func ExampleSchema() {
	cfg := gadgetConfig()
	storage, err := memory.New(registry.Schema(cfg), memory.Options{FirstRevision: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer storage.Close()
	cfg.Engine.Backend = storage
	gadgets := newGadgets(cfg)
	defer gadgets.Close()
	stored, err := storage.Get(context.Background(), "default/gear")
	fmt.Println(stored.Key, stored.Revision, err)
	// Output: default/gear 2 <nil>
}

// The format of a kind is the JSON that clients see.
func ExampleFormatOf() {
	format, err := registry.FormatOf(gadgetConfig())
	if err != nil {
		log.Fatal(err)
	}
	o, err := format.Decode([]byte(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"gear","namespace":"default","resourceVersion":"7"},"teeth":12}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(format.Kind().Plural, o.Key, o.Revision, format.Meta(o).GetName())
	text, err := format.Encode(o, "8")
	fmt.Println(string(text), err)
	// Output:
	// gadgets default/gear 7 gear
	// {"kind":"Gadget","apiVersion":"example.com/v1","metadata":{"name":"gear","namespace":"default","resourceVersion":"8"},"teeth":12} <nil>
}

func ExampleKind_Key() {
	gadget := registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	node := registry.Kind{Group: "example.com", Version: "v1", Kind: "Node", ClusterScoped: true}
	fmt.Println(gadget.Key("default", "gear"), node.Key("default", "n1"))
	// Output: default/gear n1
}

func ExampleSplitKey() {
	for _, key := range []string{"default/gear", "n1"} {
		namespace, name := registry.SplitKey(key)
		fmt.Printf("%q %q\n", namespace, name)
	}
	// Output:
	// "default" "gear"
	// "" "n1"
}

// A cache of what takes little of an object need not keep the object.
func ExampleItem_Weak() {
	ctx := context.Background()
	gadgets := newGadgets(gadgetConfig())
	defer gadgets.Close()
	r := gadgets.Resources()[0]
	names := map[weak.Pointer[store.Object]]string{}
	for range 2 {
		gear, err := r.Get(ctx, "default/gear", engine.GetOptions{})
		if err != nil {
			log.Fatal(err)
		}
		name, known := names[gear.Weak()]
		fmt.Printf("%q %t\n", name, known)
		names[gear.Weak()] = gear.Meta().GetName()
	}
	// Output:
	// "" false
	// "gear" true
}

// An item is one state of an object, as the clients of a server see it.
func ExampleItem_JSON() {
	ctx := context.Background()
	cfg := gadgetConfig()
	cfg.Columns = []registry.Column[Gadget]{{Name: "Teeth", Type: "integer", Value: func(g *Gadget) any { return g.Teeth }}}
	gadgets := newGadgets(cfg)
	defer gadgets.Close()
	gear, err := gadgets.Resources()[0].Get(ctx, "default/gear", engine.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	text, err := gear.JSON()
	fmt.Println(strings.Contains(string(text), `"resourceVersion":"`+gear.Revision().String()+`"`), err)
	fmt.Println(gear.Kind().Kind, gear.AppendCells(nil))
	_, err = registry.Item{}.JSON()
	fmt.Println(registry.Item{}.IsZero(), err != nil)
	// Output:
	// true <nil>
	// Gadget [12]
	// true true
}

// A kind of questions: a client creates a Sum, and the answer has the total. Nothing is stored.
func ExampleNewVirtual() {
	sums, err := registry.NewVirtual(registry.VirtualConfig[Sum]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Sum", ClusterScoped: true},
		Answer: func(_ context.Context, s *Sum) error {
			for _, n := range s.Spec {
				s.Total += n
			}
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := sums.Resources()[0].Create(context.Background(), "", []byte(`{"spec":[1,2,3]}`), registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	text, err := answer.JSON()
	fmt.Println(strings.Contains(string(text), `"total":6`), err)
	// Output: true <nil>
}

// Sum is a question.
type Sum struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              []int `json:"spec"`
	Total             int   `json:"total"`
}
