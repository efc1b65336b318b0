package strategic

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

// New returns the merging of a kind whose objects are of the Go type that of points to, for
// registry.Config.StrategicMerge. The error says that the type is not a struct with tags, as
// for a kind whose fields are known only at run time.
func New(of any) (registry.Merge, error) {
	if t := reflect.TypeOf(of); t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T is not a pointer to a struct, whose tags say how lists merge", of)
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(of)
	if err != nil {
		return nil, err
	}
	if _, _, err := meta.LookupPatchMetadataForStruct("metadata"); err != nil {
		return nil, fmt.Errorf("%T has no tags that say how its fields merge: %w", of, err)
	}
	return merging(meta), nil
}

// merging returns the merging by what is known of the fields.
func merging(meta strategicpatch.LookupPatchMeta) registry.Merge {
	return func(object, patch map[string]any) (merged map[string]any, err error) {
		panicked := usercode.Call("strategicpatch", "", func() {
			if err = affordable(meta, object, patch); err != nil {
				return
			}
			merged, err = strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(object, patch, meta)
		})
		if panicked != nil { // the library takes for granted that directives have the type that they should
			return nil, errors.New("it cannot be evaluated: a directive, or a field that merges, has a value of another type than it should")
		}
		if slices.ContainsFunc(malformed, func(target error) bool { return errors.Is(err, target) }) {
			return nil, &registry.BadRequestError{Reason: "the strategic merge patch: " + err.Error(), Cause: err}
		}
		return merged, err
	}
}

// malformed are the errors of patches that apply to no object.
var malformed = []error{
	mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
	mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
}
