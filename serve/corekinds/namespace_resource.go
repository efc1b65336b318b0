package corekinds

import (
	"context"
	"slices"

	"github.com/watchmill/watchmill/registry"
)

// finalizeSubresource is the name of the subresource by which the finalizers in the spec of a namespace change.
const finalizeSubresource = "finalize"

// finalizing is the key of a context in which the finalizers in the spec of a namespace may change.
type finalizing struct{}

// inFinalizing returns a context in which they may change.
func inFinalizing(ctx context.Context) context.Context {
	return context.WithValue(ctx, finalizing{}, true)
}

func isFinalizing(ctx context.Context) bool { return ctx.Value(finalizing{}) != nil }

// namespaceResources returns the resources of namespaces, of which the first two are the objects and their status.
// As in Kubernetes, clients delete namespaces one by one, and there is a subresource for their finalizers.
func namespaceResources(of []registry.Resource) []registry.Resource {
	objects := of[0]
	single, final := *objects.Info(), *objects.Info()
	single.Verbs = slices.DeleteFunc(slices.Clone(single.Verbs), func(verb string) bool { return verb == "deletecollection" })
	final.Subresource, final.Verbs, final.Apply, final.StrategicMerge = finalizeSubresource, []string{"update"}, false, nil
	return append([]registry.Resource{&described{objects, &single}, &finalize{described{objects, &final}}}, of[1:]...)
}

// described is a resource with another description.
type described struct {
	registry.Resource
	info *registry.Info
}

func (d *described) Info() *registry.Info { return d.info }

// finalize is the subresource for the finalizers in the spec of a namespace.
type finalize struct{ described }

func (f *finalize) Update(ctx context.Context, key string, change func(live registry.Item) ([]byte, error), opts registry.WriteOptions) (it registry.Item, created bool, err error) {
	return f.Resource.Update(inFinalizing(ctx), key, change, opts)
}
