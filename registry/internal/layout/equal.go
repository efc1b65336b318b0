package layout

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
)

// Equality returns what compares values of type t as the API server does: nil and empty
// lists are equal, and so are quantities of the same number. Structs with unexported
// fields, such as [time.Time], are compared by their method Equal, or by
// [reflect.DeepEqual] if they have none; the API server's own comparison panics on them.
func Equality(t reflect.Type) conversion.Equalities {
	e := equality.Semantic.Copy()
	addOpaque(e, t, map[reflect.Type]bool{})
	return e
}

// addOpaque adds a comparison for each struct with unexported fields among t and the types
// in it.
func addOpaque(e conversion.Equalities, t reflect.Type, seen map[reflect.Type]bool) {
	if _, known := e.Equalities[t]; known || seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		addOpaque(e, t.Elem(), seen)
	case reflect.Struct:
		if opaque(t) {
			e.Equalities[t] = comparison(t)
			return
		}
		for i := range t.NumField() {
			addOpaque(e, t.Field(i).Type, seen)
		}
	}
}

// opaque reports whether a struct has fields that cannot be read by reflection. Those of an
// embedded struct can, whatever its name.
func opaque(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && (!f.Anonymous || f.Type.Kind() != reflect.Struct || opaque(f.Type)) {
			return true
		}
	}
	return false
}

// comparison returns the function that compares two values of type t as a whole.
func comparison(t reflect.Type) reflect.Value {
	result := reflect.TypeFor[bool]()
	signature := reflect.FuncOf([]reflect.Type{t, t}, []reflect.Type{result}, false)
	if m, found := t.MethodByName("Equal"); found && m.Type == signature {
		return m.Func
	}
	return reflect.MakeFunc(signature, func(args []reflect.Value) []reflect.Value {
		return []reflect.Value{reflect.ValueOf(reflect.DeepEqual(args[0].Interface(), args[1].Interface()))}
	})
}
