package corekinds

import (
	"context"

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

// namespaceResources returns the resources of namespaces, of which the first two are the objects and their status, with
// the subresource for their finalizers.
func namespaceResources(of []registry.Resource) []registry.Resource {
	objects := of[0]
	info := *objects.Info()
	info.Subresource, info.Verbs, info.Apply, info.StrategicMerge = finalizeSubresource, []string{"update"}, false, nil
	return append([]registry.Resource{objects, &finalize{objects, &info}}, of[1:]...)
}

// finalize is the subresource for the finalizers in the spec of a namespace.
type finalize struct {
	registry.Resource
	info *registry.Info
}

func (f *finalize) Info() *registry.Info { return f.info }

func (f *finalize) Update(ctx context.Context, key string, change func(live registry.Item) ([]byte, error), opts registry.WriteOptions) (it registry.Item, created bool, err error) {
	return f.Resource.Update(inFinalizing(ctx), key, change, opts)
}
