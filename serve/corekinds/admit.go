package corekinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// errImmortal is why some namespaces cannot be deleted.
var errImmortal = errors.New("this namespace may not be deleted")

// Admit refuses to create objects in a namespace that is being deleted, and to delete a namespace that is always there,
// so that Kinds are a [registry.Admitter] for the program's other kinds. In a namespace that is being deleted it takes note
// of objects that go. It does not block, except that it asks storage until the namespaces have been read.
//
// Errors: [engine.ErrNotReady], [engine.ErrEngineClosed], ctx's cause, or a StatusError of k8s.io/apimachinery: Forbidden
// as in Kubernetes, with the cause NamespaceTerminating, by which clients know that they are to give up;
// ServiceUnavailable if storage cannot be asked.
func (k *Kinds) Admit(ctx context.Context, a *registry.Admission) error {
	switch {
	case k.isNamespace(a):
		if a.Operation == registry.OperationDelete && slices.Contains(immortal, a.Old.(metav1.Object).GetName()) {
			return errImmortal
		}
		return nil
	case a.Kind.ClusterScoped:
		return nil
	case a.Operation != registry.OperationCreate:
		k.notice(ctx, a)
		return nil
	}
	name := a.Object.(metav1.Object).GetNamespace()
	n, err := k.namespaces.Engine().Get(ctx, name, engine.GetOptions{Read: engine.Cached()})
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return nil // it need not exist
	case errors.Is(err, engine.ErrNotReady), errors.Is(err, engine.ErrEngineClosed), ctx.Err() != nil:
		return err // of which a server says that it may pass
	case err != nil:
		return apierrors.NewServiceUnavailable("the namespaces cannot be read: " + err.Error())
	case n.Value.DeletionTimestamp != nil:
		return terminating(a, name)
	}
	return nil
}

// terminating refuses to create an object in a namespace that is being deleted.
func terminating(a *registry.Admission, namespace string) error {
	m := a.Object.(metav1.Object)
	err := apierrors.NewForbidden(a.Kind.GroupResource(), cmp.Or(m.GetName(), m.GetGenerateName()),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: core.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace",
	})
	return err
}

// isNamespace reports whether a write is of a namespace of this package.
func (k *Kinds) isNamespace(a *registry.Admission) bool {
	return a.Kind.Group == "" && a.Kind.Kind == "Namespace"
}
