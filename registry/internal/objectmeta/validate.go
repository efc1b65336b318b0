package objectmeta

import (
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var metadata = field.NewPath("metadata")

// Validate returns what is wrong with the metadata of any object. names is the rule for its name.
func Validate(m metav1.Object, namespaced bool, names func(name string, prefix bool) []string) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(m, namespaced, names, metadata)
}

// ValidateUpdate returns what is wrong with metadata that replaces old, whose revision is given.
func ValidateUpdate(m, old metav1.Object, revision string) field.ErrorList {
	m.SetResourceVersion(revision) // which the validation requires
	wrong := validation.ValidateObjectMetaAccessorUpdate(m, old, metadata)
	m.SetResourceVersion("")
	if old.GetDeletionTimestamp() == nil {
		return wrong
	}
	// The validation has told of new finalizers, which would hold up the deletion. Kubernetes tells of them twice.
	return append(wrong, validation.ValidateNoNewFinalizers(m.GetFinalizers(), old.GetFinalizers(), metadata.Child("finalizers"))...)
}
