package layout

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// deepCopy replaces the value that pointer points to, a copy that may share maps, slices and pointers with
// another, by one that shares none. A generated DeepCopyObject does that. Without one, what unexported
// fields hold, and those that JSON leaves out, is still shared.
func deepCopy(pointer any) {
	value := reflect.ValueOf(pointer).Elem()
	if o, ok := pointer.(runtime.Object); ok {
		if c := reflect.ValueOf(o.DeepCopyObject()); c.Type() == reflect.TypeOf(pointer) { // it may be that of an embedded type
			value.Set(c.Elem())
			return
		}
	}
	unshare(value, maxNested)
}

// maxNested is how deep maps, slices and pointers may be in each other. A value with a pointer to itself,
// which JSON cannot have, is deeper.
const maxNested = 1000

var errNested = fmt.Errorf("the value is nested more than %d deep, or has a pointer to itself, which JSON cannot have", maxNested)

// unshare replaces the maps, slices and pointers in v by copies. It panics with errNested if they are more
// than that deep.
func unshare(v reflect.Value, deep int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" { // it may be a way back, as to the parent in a tree
				unshare(v.Field(i), deep)
			}
		}
	case reflect.Array:
		unshareItems(v, deep)
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		if !v.CanSet() || v.IsNil() {
			return
		}
		if deep == 0 {
			panic(errNested)
		}
		v.Set(copyOf(v, deep-1))
	}
}

// unshareItems is unshare for the items of a list.
func unshareItems(list reflect.Value, deep int) {
	if k := list.Type().Elem().Kind(); k <= reflect.Complex128 || k == reflect.String {
		return
	}
	for i := range list.Len() {
		unshare(list.Index(i), deep)
	}
}

// copyOf returns a copy of what v, which is not nil, holds or points to.
func copyOf(v reflect.Value, deep int) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(v.Elem())
		unshare(c.Elem(), deep)
		return c
	case reflect.Slice:
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		unshareItems(c, deep)
		return c
	case reflect.Map:
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for name, member := range v.Seq2() {
			c.SetMapIndex(name, own(member, deep))
		}
		return c
	default:
		return own(v.Elem(), deep) // of an interface
	}
}

// own returns a copy of v that shares nothing with it.
func own(v reflect.Value, deep int) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	unshare(c, deep)
	return c
}
