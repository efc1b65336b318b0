package layout

import (
	"reflect"

	"k8s.io/apimachinery/pkg/conversion"
)

// Equality returns functions that compare values of type t as the API server does: nil
// and empty lists are equal, and so are quantities of the same number. Structs with
// unexported fields, such as [time.Time], are compared by their method Equal, or by
// [reflect.DeepEqual] if they have none; the API server's own comparison panics on them.
// A value in an interface is compared by its own type.
func Equality(t reflect.Type) conversion.Equalities { return new(equalities).of(t) }

// addOpaque adds a comparison for each struct with unexported fields, and for each interface,
// among t and the types in it.
func (q *equalities) addOpaque(e conversion.Equalities, t reflect.Type, seen map[reflect.Type]bool) {
	if _, known := e.Equalities[t]; known || seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		q.addOpaque(e, t.Elem(), seen)
	case reflect.Interface:
		e.Equalities[t] = compareBy(t, q.equal)
	case reflect.Struct:
		if opaque(t) {
			e.Equalities[t] = comparison(t)
			return
		}
		for f := range t.Fields() {
			q.addOpaque(e, f.Type, seen)
		}
	}
}

// opaque reports whether a struct has fields that cannot be read by reflection. The fields
// of an embedded struct can be, whatever its name.
func opaque(t reflect.Type) bool {
	for f := range t.Fields() {
		if !f.IsExported() && (!f.Anonymous || f.Type.Kind() != reflect.Struct || opaque(f.Type)) {
			return true
		}
	}
	return false
}

// comparison returns the function that compares two values of type t as a whole.
func comparison(t reflect.Type) reflect.Value {
	if m, found := t.MethodByName("Equal"); found && m.Type == signature(t) {
		return m.Func
	}
	return compareBy(t, reflect.DeepEqual)
}

// compareBy returns the function that compares two values of type t by equal.
func compareBy(t reflect.Type, equal func(a, b any) bool) reflect.Value {
	return reflect.MakeFunc(signature(t), func(args []reflect.Value) []reflect.Value {
		return []reflect.Value{reflect.ValueOf(equal(args[0].Interface(), args[1].Interface()))}
	})
}

// signature is the type of a function that compares two values of type t.
func signature(t reflect.Type) reflect.Type {
	return reflect.FuncOf([]reflect.Type{t, t}, []reflect.Type{reflect.TypeFor[bool]()}, false)
}
