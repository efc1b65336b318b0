package strategic

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// mostItems is how many items a list that is merged may have, together with those of the patch. The
// library sorts them by looking each up in the list for each comparison: twice as many take more than
// four times as long, some seconds for these, and a body of 3 MiB has room for so many that it would
// take hours, in which nothing stops it.
const mostItems = 5000

var errTooMany = errors.New("it would take too long: the lists that it merges have more than 5,000 items together with its own; send a merge patch or a JSON patch")

// affordable returns errTooMany if it would take too long to merge a patch into an object.
func affordable(meta strategicpatch.LookupPatchMeta, object, patch map[string]any) error {
	longest, work := map[string]int{}, 0
	eachList(meta, object, "", func(path string, items int) { longest[path] = max(longest[path], items) })
	eachList(meta, patch, "", func(path string, items int) {
		n := items + longest[path]
		work += n * n
	})
	if work > mostItems*mostItems {
		return errTooMany
	}
	return nil
}

// eachList calls do of each list in an object, or in a patch, that is merged: with its path, on which
// there are fields alone, and how many items it has.
func eachList(meta strategicpatch.LookupPatchMeta, fields map[string]any, path string, do func(path string, items int)) {
	for name, value := range fields {
		switch v := value.(type) {
		case map[string]any:
			if below, _, err := meta.LookupPatchMetadataForStruct(name); err == nil {
				eachList(below, v, path+"."+name, do)
			}
		case []any:
			if _, of, isDirective := strings.Cut(name, "/"); isDirective && strings.HasPrefix(name, "$") {
				name = of
			}
			below, how, err := meta.LookupPatchMetadataForSlice(name)
			if err != nil || !slices.Contains(how.GetPatchStrategies(), "merge") {
				continue
			}
			at := path + "." + name
			do(at, len(v))
			for _, item := range v {
				if item, isObject := item.(map[string]any); isObject {
					eachList(below, item, at, do)
				}
			}
		}
	}
}
