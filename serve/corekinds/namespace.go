package corekinds

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/registry/strategic"
)

// immortal are the namespaces that are always there.
var immortal = []string{metav1.NamespaceDefault, metav1.NamespacePublic, metav1.NamespaceSystem}

// finalizeSubresource is the name of the subresource by which the finalizers in the spec of a namespace change.
const finalizeSubresource = "finalize"

// namespaceConfig returns the configuration of namespaces. One that is deleted stays until its spec has no
// finalizers, which the controller of [Kinds] sees to.
func namespaceConfig() registry.Config[core.Namespace] {
	return registry.Config[core.Namespace]{
		Kind: registry.Kind{
			Version: "v1", Kind: "Namespace", Plural: "namespaces", ShortNames: []string{"ns"}, ClusterScoped: true, Status: true,
			Parts: []registry.Part{{Name: finalizeSubresource, Verbs: []string{"update"}}},
		},
		Columns: []registry.Column[core.Namespace]{{
			Name: "Status", Type: "string", Description: "Whether it is being deleted.", Value: func(n *core.Namespace) any { return string(n.Status.Phase) },
		}},
		Fields: map[string]func(*core.Namespace) string{"status.phase": func(n *core.Namespace) string { return string(n.Status.Phase) }},
		Strategy: registry.Strategy[core.Namespace]{
			NoGeneration: true,
			ValidateName: validation.ValidateNamespaceName, Default: defaultNamespace, Canonicalize: labelNamespace,
			Prepare: prepareNamespace, Validate: validateNamespaceSpec,
			Keep:      func(n *core.Namespace) bool { return len(n.Spec.Finalizers) > 0 },
			Terminate: terminate,
		},
		Decoders: protobuf.Decoders[core.Namespace]("Namespace"), StrategicMerge: strategic.New, Apply: apply.New, NoDeleteCollection: true,
	}
}

// defaultNamespace sets the defaults of a namespace. As in Kubernetes the phase has one, so that a client which writes the
// status of an active namespace may leave it out.
func defaultNamespace(n *core.Namespace) {
	labelNamespace(n)
	n.Status.Phase = cmp.Or(n.Status.Phase, core.NamespaceActive)
}

// labelNamespace gives a namespace its name as a label, by which selectors find it. One whose name is yet to be
// generated gets it later.
func labelNamespace(n *core.Namespace) {
	if n.Name == "" || n.Labels[core.LabelMetadataName] == n.Name {
		return
	}
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[core.LabelMetadataName] = n.Name
	n.Labels = labels
}

// terminate changes a namespace as it is marked. As in Kubernetes the mark has no period of grace.
func terminate(n *core.Namespace) {
	n.DeletionGracePeriodSeconds, n.Status.Phase = nil, core.NamespaceTerminating
}

// prepareNamespace makes a new namespace active, and leaves the finalizers in the spec to those that finalize it.
func prepareNamespace(ctx context.Context, n, old *core.Namespace) {
	switch {
	case old == nil:
		n.Status = core.NamespaceStatus{Phase: core.NamespaceActive}
		if !slices.Contains(n.Spec.Finalizers, core.FinalizerKubernetes) {
			n.Spec.Finalizers = append(slices.Clone(n.Spec.Finalizers), core.FinalizerKubernetes)
		}
	case registry.SubresourceOf(ctx) != finalizeSubresource:
		n.Spec.Finalizers = old.Spec.Finalizers
	}
}

func validateNamespaceSpec(_ context.Context, n, _ *core.Namespace) (wrong field.ErrorList) {
	path := field.NewPath("spec", "finalizers")
	for _, name := range n.Spec.Finalizers {
		wrong = append(wrong, validation.ValidateFinalizerName(string(name), path)...)
		if !strings.Contains(string(name), "/") && !slices.Contains(plainFinalizers, name) {
			wrong = append(wrong, field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	phase, condition := core.NamespaceActive, "empty"
	if n.DeletionTimestamp != nil {
		phase, condition = core.NamespaceTerminating, "not empty"
	}
	if n.Status.Phase != phase {
		wrong = append(wrong, field.Invalid(field.NewPath("status", "Phase"), n.Status.Phase, fmt.Sprintf("may only be '%s' if `deletionTimestamp` is %s", phase, condition)))
	}
	return wrong
}

// plainFinalizers are the finalizers that need no domain.
var plainFinalizers = []core.FinalizerName{core.FinalizerKubernetes, metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
