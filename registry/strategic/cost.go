package strategic

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// maxItems is how many items a list that is merged may have, together with those of the patch. The
// library sorts them by looking each up in the list for each comparison: twice as many take more than
// four times as long, some seconds for these, and a body of 3 MiB has room for so many that it would
// take hours, in which nothing stops it. Several lists may take as long as one of that many items.
const maxItems = 5000

// maxSteps is the sum of the squares of the lengths of all lists that are merged.
const maxSteps = maxItems * maxItems

var errTooMany = errors.New("it would take too long: longer than to merge one list with 5,000 items, those of the patch included; send a merge patch or a JSON patch")

// affordable returns errTooMany if it would take too long to merge a patch into an object.
func affordable(meta strategicpatch.LookupPatchMeta, object, patch map[string]any) error {
	e := estimate{}
	e.object(meta, object, []map[string]any{patch})
	if e.steps > maxSteps {
		return errTooMany
	}
	return nil
}

// estimate counts the steps of a merge.
type estimate struct{ steps int }

// merge counts the merge of a list with that many items, those of the patch included.
func (e *estimate) merge(items int) { e.add(items * items) }

func (e *estimate) add(steps int) { e.steps = min(e.steps+steps, 2*maxSteps) }

// object counts the patches that are merged into an object one after the other: more than one if they are
// items with the same key. If there is no object, it becomes the first patch, which costs nothing. A patch
// that takes the object's place costs nothing either.
func (e *estimate) object(meta strategicpatch.LookupPatchMeta, live map[string]any, patches []map[string]any) {
	if len(patches) == 1 && (patches[0]["$patch"] == "replace" || patches[0]["$patch"] == "delete") {
		return
	}
	if live == nil && len(patches) > 0 {
		live, patches = patches[0], patches[1:]
	}
	for name, changes := range byField(patches) {
		e.objects(meta, name, live[name], changes)
		e.list(meta, name, live[name], changes)
	}
}

// objects counts the changes that are objects.
func (e *estimate) objects(meta strategicpatch.LookupPatchMeta, name string, live any, changes []change) {
	var patches []map[string]any
	for _, c := range changes {
		if patch, isObject := c.value.(map[string]any); isObject {
			patches = append(patches, patch)
		}
	}
	below, how, err := meta.LookupPatchMetadataForStruct(name)
	if err != nil || len(patches) == 0 || slices.Contains(how.GetPatchStrategies(), "replace") {
		return
	}
	object, _ := live.(map[string]any)
	e.object(below, object, patches)
}

// list counts the changes that are lists, or orders of them.
func (e *estimate) list(meta strategicpatch.LookupPatchMeta, name string, live any, changes []change) {
	changes = slices.DeleteFunc(changes, func(c change) bool { return !c.isOfList() })
	if len(changes) == 0 {
		return
	}
	below, how, err := meta.LookupPatchMetadataForSlice(name)
	if err != nil {
		return
	}
	merges := slices.Contains(how.GetPatchStrategies(), "merge")
	list, exists := live.([]any)
	if len(changes) == 1 && changes[0].replaces() {
		list = nil
	}
	e.items(below, how.GetPatchMergeKey(), list, changes)
	length := len(list)
	for _, c := range changes {
		if c.deletes && !hasObjects(c.items) && !hasObjects(list) { // scalars are looked up once
			e.add(length + len(c.items))
			continue
		}
		if sorts := merges || c.deletes || c.ordered; sorts && (exists || c.ordered && len(c.items) > 0) {
			e.merge(length + max(len(c.items), len(c.order)))
		}
		length, exists = length+len(c.items), exists || len(c.items) > 0
	}
}

// items counts the changes of the items of a list, which have a key, and may be nested.
func (e *estimate) items(meta strategicpatch.LookupPatchMeta, key string, live []any, changes []change) {
	if key == "" {
		return
	}
	patches := map[any][]map[string]any{}
	for _, c := range changes {
		eachObject(c.items, func(item map[string]any) { patches[item[key]] = append(patches[item[key]], item) })
	}
	found := map[any]map[string]any{}
	eachObject(live, func(item map[string]any) {
		if _, again := found[item[key]]; !again { // the library takes the first one
			found[item[key]] = item
		}
	})
	for of, items := range patches {
		e.object(meta, found[of], items)
	}
}

// eachObject calls do of each object in a list.
func eachObject(list []any, do func(map[string]any)) {
	for _, item := range list {
		if object, isObject := item.(map[string]any); isObject {
			do(object)
		}
	}
}

// change is what a patch says of a field.
type change struct {
	// value is the field itself, items what a list has, and order the list of its $setElementOrder.
	value        any
	items, order []any
	// ordered: there is an order. deletes: the items are those of $deleteFromPrimitiveList.
	ordered, deletes bool
}

func (c *change) isOfList() bool { return c.items != nil || c.ordered }

// replaces reports whether the items take the place of those that a list has. With an order those of both
// are looked up.
func (c *change) replaces() bool {
	return !c.ordered && slices.ContainsFunc(c.items, func(item any) bool {
		object, _ := item.(map[string]any)
		return object["$patch"] == "replace"
	})
}

// byField returns what patches say of each field, in their order.
func byField(patches []map[string]any) map[string][]change {
	fields := map[string][]change{}
	for _, patch := range patches {
		for name, value := range patch {
			items, _ := value.([]any)
			if of, isOrder := strings.CutPrefix(name, orderPrefix); isOrder {
				if _, both := patch[of]; !both {
					fields[of] = append(fields[of], change{order: items, ordered: true})
				}
				continue
			}
			of, deletes := strings.CutPrefix(name, deletePrefix)
			c := change{value: value, items: items, deletes: deletes}
			if order, ordered := patch[orderPrefix+name]; ordered {
				c.order, _ = order.([]any)
				c.ordered = true
			}
			fields[of] = append(fields[of], c)
		}
	}
	return fields
}

// These prefixes begin the directives that are fields next to that of a list.
const (
	orderPrefix  = "$setElementOrder/"
	deletePrefix = "$deleteFromPrimitiveList/"
)

func hasObjects(list []any) bool {
	if len(list) == 0 {
		return false
	}
	_, isObject := list[0].(map[string]any)
	return isObject
}
