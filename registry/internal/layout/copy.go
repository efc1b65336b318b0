package layout

import (
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// deepCopy replaces the value that pointer points to, a copy that may share maps, slices and pointers with
// another, by one that shares none. A generated DeepCopyObject does that. Without one, the contents of
// unexported fields, and of fields that JSON leaves out, are still shared.
//
// The error is errNested. The value is then copied in part.
func deepCopy(pointer any) error {
	value := reflect.ValueOf(pointer).Elem()
	if o, ok := pointer.(runtime.Object); ok {
		if c := reflect.ValueOf(o.DeepCopyObject()); c.Type() == reflect.TypeOf(pointer) { // it may be that of an embedded type
			value.Set(c.Elem())
			return nil
		}
	}
	c := copying{around: map[reference]bool{}}
	c.unshare(value)
	return c.err
}

// maxNested is how deep maps, slices and pointers may be in each other.
const maxNested = 1000

// errNested: a value points to a value around it, such as to the parent in a tree, or is nested deeper
// than maxNested.
var errNested = errors.New("has a pointer to what it is in, or is nested too deep")

// copying copies a value.
type copying struct {
	// around are the pointers on the way to what is being copied, and deep is how many maps, slices
	// and pointers there are.
	around map[reference]bool
	deep   int
	err    error // nothing more is copied
}

// reference is a pointer. A struct has the address of its first field, so it has a type.
type reference struct {
	of reflect.Type
	at uintptr
}

// unshare replaces the maps, slices and pointers in v by copies.
func (c *copying) unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				c.unshare(v.Field(i))
			}
		}
	case reflect.Array:
		c.unshareItems(v)
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		if v.CanSet() && !v.IsNil() {
			c.replace(v)
		}
	}
}

// unshareItems is unshare for the items of a list.
func (c *copying) unshareItems(list reflect.Value) {
	if k := list.Type().Elem().Kind(); k <= reflect.Complex128 || k == reflect.String {
		return
	}
	for i := range list.Len() {
		c.unshare(list.Index(i))
	}
}

// replace replaces v, which is not nil, by a copy of what it holds or points to.
func (c *copying) replace(v reflect.Value) {
	var to reference
	if v.Kind() == reflect.Pointer {
		to = reference{v.Type(), v.Pointer()}
	}
	if c.deep == maxNested || c.around[to] {
		c.err = errNested
	}
	if c.err != nil {
		return
	}
	c.deep++
	if to.of != nil {
		c.around[to] = true
	}
	v.Set(c.copyOf(v))
	delete(c.around, to)
	c.deep--
}

// copyOf returns a copy of the value that v, which is not nil, holds or points to.
func (c *copying) copyOf(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		to.Elem().Set(v.Elem())
		c.unshare(to.Elem())
		return to
	case reflect.Slice:
		to := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(to, v)
		c.unshareItems(to)
		return to
	case reflect.Map:
		to := reflect.MakeMapWithSize(v.Type(), v.Len())
		for name, member := range v.Seq2() {
			to.SetMapIndex(name, c.own(member))
		}
		return to
	default:
		return c.own(v.Elem()) // of an interface
	}
}

// own returns a copy of v that shares nothing with it.
func (c *copying) own(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	c.unshare(to)
	return to
}
