package crd

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxDefaults is after how many bytes of JSON a write sets no more defaults. A body has room for a million
// items that lack all of their fields.
const maxDefaults = 3 << 20

// defaulting sets defaults as long as there is room for them, in bytes of JSON.
type defaulting struct{ room int }

// setDefaults sets the defaults of an object that is written, or as many as there is room for. Such an object
// does not pass [schema.checkDefaulted].
func (s *schema) setDefaults(fields map[string]any) {
	(&defaulting{maxDefaults}).set(s, fields)
}

// completeStored sets all defaults of an object from storage.
func (s *schema) completeStored(fields map[string]any) {
	(&defaulting{math.MaxInt}).set(s, fields)
}

// checkDefaulted refuses an object in which there was no room for all defaults.
func (s *schema) checkDefaulted(o *unstructured.Unstructured) field.ErrorList {
	if sizeOf(o.Object) <= maxDefaults || s.conforms(o.Object, false) {
		return nil
	}
	return field.ErrorList{field.Forbidden(nil, fmt.Sprintf("the defaults of missing fields are larger than %d bytes together: give fewer items that lack fields", maxDefaults))}
}

// set sets fields that are missing, or null where null is not allowed, to their defaults. Without a default
// such a null is dropped, as Kubernetes does.
func (d *defaulting) set(s *schema, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, property := range s.Properties {
			d.setField(property, v, name)
		}
		if s.Additional != nil && s.Additional.schema != nil {
			for name := range v {
				if s.Properties[name] == nil {
					d.setField(s.Additional.schema, v, name)
				}
			}
		}
	case []any:
		if s.Items != nil {
			d.setItems(s.Items, v)
		}
	}
}

// setField is set of one field, whose schema is s.
func (d *defaulting) setField(s *schema, fields map[string]any, name string) {
	present, found := fields[name]
	if !found || present == nil && !s.Nullable {
		if s.Default == nil {
			delete(fields, name)
			return
		}
		if !d.hasRoom(len(name) + len(`"":,`) + sizeOf(s.Default)) {
			return
		}
		fields[name] = runtime.DeepCopyJSONValue(s.Default)
	}
	d.set(s, fields[name])
}

// setItems is set of the items of a list, whose schema is s.
func (d *defaulting) setItems(s *schema, items []any) {
	for i, item := range items {
		if item == nil && !s.Nullable && d.hasRoom(sizeOf(s.Default)) {
			items[i] = runtime.DeepCopyJSONValue(s.Default)
		}
		d.set(s, items[i])
	}
}

// hasRoom reports whether there is room left, and takes that many bytes of it. The last may be more than there were: if
// one that is large were left out, the object would not show by its size that defaults are missing.
func (d *defaulting) hasRoom(bytes int) bool {
	if d.room <= 0 {
		return false
	}
	d.room -= bytes
	return true
}

// sizeOf returns about how many bytes a value has as JSON, but not less than a tenth of these.
func sizeOf(value any) int {
	size := len("null")
	switch v := value.(type) {
	case string:
		size = len(v) + len(`""`)
	case []any:
		for _, item := range v {
			size += sizeOf(item) + len(",")
		}
	case map[string]any:
		for name, member := range v {
			size += len(name) + len(`"":,`) + sizeOf(member)
		}
	}
	return size
}
