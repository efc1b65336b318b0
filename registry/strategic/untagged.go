package strategic

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/watchmill/watchmill/registry"
)

// Untagged is [New] for a kind whose fields have no tags, or are known only at run time, as those of
// CustomResourceDefinitions: its lists are replaced, and its objects merge, except for the metadata, which merges by its
// tags. It looks at nothing of the type that it is given, and its error is nil.
func Untagged(any) (registry.Merge, error) {
	metadata, err := strategicpatch.NewPatchMetaFromStruct(&metav1.ObjectMeta{})
	if err != nil {
		return nil, err
	}
	return merging(untagged{metadata}), nil
}

// untagged says of all fields that they have no tags, except of the metadata's at the root of an object.
type untagged struct {
	metadata strategicpatch.LookupPatchMeta // nil below the root
}

// LookupPatchMetadataForStruct implements [strategicpatch.LookupPatchMeta].
func (u untagged) LookupPatchMetadataForStruct(name string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	if name == "metadata" && u.metadata != nil {
		return u.metadata, strategicpatch.PatchMeta{}, nil
	}
	return untagged{}, strategicpatch.PatchMeta{}, nil
}

// LookupPatchMetadataForSlice implements [strategicpatch.LookupPatchMeta].
func (untagged) LookupPatchMetadataForSlice(string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta, error) {
	return untagged{}, strategicpatch.PatchMeta{}, nil
}

// Name implements [strategicpatch.LookupPatchMeta].
func (untagged) Name() string { return "" }
