package crd

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxFinalizers is how many finalizers a writer is warned of.
const maxFinalizers = 100

// standardFinalizers are those of Kubernetes itself.
var standardFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, "kubernetes"}

// finalizerWarnings returns Kubernetes' warnings of finalizers that old does not have, and that another
// writer may have, too, since no domain is in their names.
func finalizerWarnings(o, old *unstructured.Unstructured) (warnings []string) {
	known := map[string]bool{}
	for _, name := range standardFinalizers {
		known[name] = true
	}
	if old != nil {
		for _, name := range old.GetFinalizers() {
			known[name] = true
		}
	}
	for _, name := range slices.Sorted(slices.Values(o.GetFinalizers())) {
		if known[name] || strings.Contains(name, "/") || len(warnings) == maxFinalizers {
			continue
		}
		known[name] = true
		path := ""
		if strings.Contains(name, ".") {
			path = " including a path (/)"
		}
		warnings = append(warnings, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name%s to avoid accidental conflicts with other finalizer writers", name, path))
	}
	return warnings
}
