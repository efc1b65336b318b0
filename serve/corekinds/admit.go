package corekinds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// errImmortal is why some namespaces cannot be deleted.
var errImmortal = errors.New("this namespace may not be deleted")

// Admit refuses to create objects in a namespace that is being deleted, so that Kinds are a [registry.Admitter] for
// the program's other kinds. It blocks only until the namespaces have been read.
func (k *Kinds) Admit(ctx context.Context, a *registry.Admission) error {
	switch {
	case k.isNamespace(a):
		if a.Operation == registry.OperationDelete && slices.Contains(immortal, a.Old.(metav1.Object).GetName()) {
			return errImmortal
		}
		return nil
	case a.Operation != registry.OperationCreate, a.Kind.ClusterScoped:
		return nil
	}
	name := a.Object.(metav1.Object).GetNamespace()
	n, err := k.namespaces.Engine().Get(ctx, name, engine.GetOptions{Read: engine.Cached()})
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return nil // it need not exist
	case err != nil:
		return err
	case n.Value.DeletionTimestamp != nil:
		return fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name)
	}
	return nil
}

// isNamespace reports whether a write is of a namespace of this package.
func (k *Kinds) isNamespace(a *registry.Admission) bool {
	return a.Kind.Group == "" && a.Kind.Kind == "Namespace"
}
