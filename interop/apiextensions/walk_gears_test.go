package apiextensions

// gearRequest draws a write of a gear.
func (w *walk) gearRequest() request {
	name := pick(w, names...)
	query := "fieldManager=" + pick(w, "m1", "m2", "m3")
	o := object{"apiVersion": "example.com/v1", "kind": "Gear", "metadata": object{"name": name}, "spec": w.gearSpec()}
	if w.chance(0.2) {
		o = object{"apiVersion": "example.com/v1", "kind": "Gear", "metadata": object{"name": name}, "status": object{"teeth": w.IntN(9)}}
		return in(gears, pick(w, applyTo(name+"/status", query+"&force=true", text(o)), patch(mergePatch, name+"/status?"+query, text(o))))
	}
	switch w.IntN(8) {
	case 0, 1:
		return in(gears, postWith(query, text(o)))
	case 2, 3:
		o["metadata"].(object)["resourceVersion"] = "$rv:" + name + "$"
		return in(gears, put(name+"?"+query, text(o)))
	case 4, 5:
		return in(gears, patch(mergePatch, name+"?"+query, text(o)))
	case 6:
		return in(gears, remove(name, ""))
	}
	return in(gears, applyTo(name, query+"&force=true", text(full(o))))
}

// gearSpec draws the spec of a gear. Half of them have a value that a rule refuses, whatever was
// there before.
func (w *walk) gearSpec() object {
	s := object{}
	set[any](w, s, "teeth", 0.97, 2, 4, 6, 8, 8, 8, 8, 8, 8, 8, 8, 7)
	set[any](w, s, "metal", 0.6, "tin", "tin", "tin", "lead")
	set[any](w, s, "age", 0.4, 0, 0, 0, 1, 2, 3, nil)
	set[any](w, s, "left", 0.2, "a", nil)
	set[any](w, s, "right", 0.1, "", "r", "long")
	set[any](w, s, "port", 0.2, 1, "xy", "xyz", "x", 0)
	set[any](w, s, "when", 0.1, "2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z", "1999-01-01T00:00:00Z")
	set[any](w, s, "ratio", 0.1, 1, 0.5, 2)
	set[any](w, s, "parts", 0.5, w.gearParts(), w.gearParts(), []any{})
	set[any](w, s, "tags", 0.3, []any{"x"}, []any{"y", "x"}, []any{"z"})
	set[any](w, s, "limits", 0.2, object{"a": 1, "b": 2}, object{"b": 3}, object{"b": 0}, object{"c": 8})
	set[any](w, s, "free", 0.2, object{"a": 1, "q": w.anything(2)}, object{"a": 3}, object{"a": "x"})
	set[any](w, s, "__odd-name", 0.1, 1, 2, 3)
	return s
}

// gearParts draws parts with different names, in any order.
func (w *walk) gearParts() (parts []any) {
	for _, i := range w.Perm(3)[:1+w.IntN(3)] {
		part := object{"name": names[i]}
		set[any](w, part, "wear", 0.6, 1, 2, 2, 3, 9)
		parts = append(parts, part)
	}
	return parts
}
