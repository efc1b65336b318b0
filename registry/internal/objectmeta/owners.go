package objectmeta

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DedupOwners drops repeated owner references, and reports whether there were any. References to one owner
// that differ are all kept.
func DedupOwners(m metav1.Object) (dropped bool) {
	refs := m.GetOwnerReferences()
	kept := make([]metav1.OwnerReference, 0, len(refs))
	seen := make(map[comparableOwner]bool, len(refs))
	for _, ref := range refs {
		if key := comparableOwnerOf(ref); !seen[key] {
			seen[key] = true
			kept = append(kept, ref)
		}
	}
	if len(kept) == len(refs) {
		return false
	}
	m.SetOwnerReferences(kept)
	return true
}

// comparableOwner is an owner reference with what its pointers point to in their place: two
// are equal if all fields are.
type comparableOwner struct {
	ref                            metav1.OwnerReference // without its pointers
	controller, blockOwnerDeletion optionalBool
}

type optionalBool struct{ set, value bool }

func comparableOwnerOf(ref metav1.OwnerReference) comparableOwner {
	key := comparableOwner{ref, optional(ref.Controller), optional(ref.BlockOwnerDeletion)}
	key.ref.Controller, key.ref.BlockOwnerDeletion = nil, nil
	return key
}

func optional(b *bool) optionalBool { return optionalBool{b != nil, b != nil && *b} }
