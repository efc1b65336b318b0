package scale

import "reflect"

// Differing returns the fields of an object that another one does not have, or has with
// other values.
func Differing(fields, from map[string]any) map[string]any {
	differ := map[string]any{}
	for name, value := range fields {
		object, isObject := value.(map[string]any)
		before, wasObject := from[name].(map[string]any)
		switch {
		case isObject && wasObject:
			if inner := Differing(object, before); len(inner) > 0 {
				differ[name] = inner
			}
		case !reflect.DeepEqual(value, from[name]):
			differ[name] = value
		}
	}
	return differ
}
