package layout

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// deepCopy replaces the value that pointer points to, a copy that may share maps, slices and pointers with
// another, by one that shares none. A generated DeepCopyObject does that. Without one, what unexported
// fields hold is still shared.
func deepCopy(pointer any) {
	value := reflect.ValueOf(pointer).Elem()
	if o, ok := pointer.(runtime.Object); ok {
		if c := reflect.ValueOf(o.DeepCopyObject()); c.Type() == reflect.TypeOf(pointer) { // it may be that of an embedded type
			value.Set(c.Elem())
			return
		}
	}
	unshare(value)
}

// unshare replaces the maps, slices and pointers in v by copies.
func unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			unshare(v.Field(i))
		}
	case reflect.Array:
		unshareItems(v)
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		if v.CanSet() && !v.IsNil() {
			v.Set(copyOf(v))
		}
	}
}

// unshareItems is unshare for the items of a list.
func unshareItems(list reflect.Value) {
	if k := list.Type().Elem().Kind(); k <= reflect.Complex128 || k == reflect.String {
		return
	}
	for i := range list.Len() {
		unshare(list.Index(i))
	}
}

// copyOf returns a copy of what v, which is not nil, holds or points to.
func copyOf(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(v.Elem())
		unshare(c.Elem())
		return c
	case reflect.Slice:
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		unshareItems(c)
		return c
	case reflect.Map:
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for name, member := range v.Seq2() {
			c.SetMapIndex(name, own(member))
		}
		return c
	default:
		return own(v.Elem()) // of an interface
	}
}

// own returns a copy of v that shares nothing with it.
func own(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	unshare(c)
	return c
}
