package apiextensions

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// walks returns how many walks there are, of how many requests each.
// WATCHMILL_PARITY_WALKS has more.
func walks(t *testing.T) (walks int, requests int) {
	t.Helper()
	walks = 3
	if text := os.Getenv("WATCHMILL_PARITY_WALKS"); text != "" {
		var err error
		walks, err = strconv.Atoi(text)
		require.NoError(t, err, "WATCHMILL_PARITY_WALKS is a number of walks")
	}
	return walks, 300
}

func TestWalk_IsAnsweredAsByKubernetes(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for kind, draws := range map[string]func(*walk) request{widgets: (*walk).request, gears: (*walk).gearRequest} {
		p.walk(t, kind, draws)
	}
}

// walk sends random requests for objects of a kind, which has that path, to both.
func (p *pair) walk(t *testing.T, kind string, draw func(*walk) request) {
	t.Helper()
	n, requests := walks(t)
	same := 0
	for seed := range n {
		w := &walk{Rand: rand.New(rand.NewPCG(uint64(seed), 0))}
		for i := range requests {
			r := draw(w)
			original, ours := p.ask(t, r)
			switch {
			case original == ours:
				same++
			case misfits(original, ours):
			case empties(r, original, ours), ownsNothing(original, ours):
				p.clear(t, kind)
			default:
				require.Fail(t, "answered differently", "request %d of seed %d: %s %s %s\n%s", i, seed, r.method, r.path, r.body, difference(original, ours))
			}
		}
		p.clear(t, kind)
	}
	require.Greater(t, same, n*requests*9/10)
}

// misfits reports whether a configuration does not fit the schema, which is not a failure of the
// server here: see the script.
func misfits(original, ours summary) bool {
	return original.code == http.StatusInternalServerError && ours.code == http.StatusBadRequest
}

// empties reports whether an apply has left a list or an object without members: Kubernetes'
// merge makes null of it, which its validation then refuses. Whatever else Kubernetes refuses must be
// refused here, too.
func empties(r request, original, ours summary) bool {
	if r.headers.Get("Content-Type") != applyPatch || original.code != http.StatusUnprocessableEntity {
		return false
	}
	here, emptied := causes(ours), false
	for _, c := range causes(original) {
		switch {
		case slices.Contains(here, c):
		case c.Reason != "FieldValueTypeInvalid":
			return false
		default:
			emptied = true
		}
	}
	return emptied && slices.Contains([]int{http.StatusOK, http.StatusCreated, http.StatusUnprocessableEntity}, ours.code)
}

// cause is one of the reasons for which a server has refused a request.
type cause struct{ Reason, Field string }

// causes returns the causes of a refusal, or none.
func causes(of summary) []cause {
	var status struct {
		Details struct{ Causes []cause }
	}
	_, body, _ := strings.Cut(of.text, "\n{") // after the headers
	if of.code != http.StatusUnprocessableEntity || json.Unmarshal([]byte("{"+body), &status) != nil {
		return nil
	}
	return status.Details.Causes
}

// ownsNothing reports whether an apply conflicts there, and not here, with the owner of annotations
// or labels that the object does not have: an update that empties them becomes their owner.
func ownsNothing(original, ours summary) bool {
	conflicts := func(s summary, field string) bool {
		return s.code == http.StatusConflict && strings.Contains(s.text, fmt.Sprintf("%q: %q", "field", ".metadata."+field))
	}
	return slices.ContainsFunc([]string{"annotations", "labels"}, func(field string) bool {
		return conflicts(original, field) && !conflicts(ours, field)
	})
}

// clear deletes all objects of a kind.
func (p *pair) clear(t *testing.T, kind string) {
	t.Helper()
	for _, name := range names {
		p.ask(t, in(kind, remove(name, "")))
		p.ask(t, in(kind, patch(mergePatch, name, `{"metadata":{"finalizers":null}}`)))
	}
}

// names are those of the objects that walks write, of which there are few so that writes meet.
var names = []string{"a", "b", "c"}

// walk draws requests.
type walk struct{ *rand.Rand }

// request draws a write of a widget. None is of the scale, by whose writes Kubernetes loses
// managed fields.
func (w *walk) request() request {
	name := pick(w, names...)
	query := "fieldManager=" + pick(w, "m1", "m2", "m3")
	if w.chance(0.1) {
		query += "&fieldValidation=" + pick(w, "Strict", "Ignore", "Warn")
	}
	if w.chance(0.05) {
		query += "&dryRun=All"
	}
	if w.chance(0.15) {
		return w.statusRequest(name, query)
	}
	switch w.IntN(11) {
	case 0, 1:
		return postWith(query, text(w.object(name)))
	case 2, 3:
		o := w.object(name)
		o["metadata"].(object)["resourceVersion"] = "$rv:" + name + "$"
		query = strings.Replace(query, "Strict", "Warn", 1) // Kubernetes reads the body before it looks for the widget
		return put(name+"?"+query, text(o))
	case 4, 5:
		o := w.object(name)
		delete(o["metadata"].(object), "name")
		query = strings.Replace(query, "Strict", "Warn", 1) // the script says how the servers differ there
		return patch(mergePatch, name+"?"+query, text(o))
	case 6:
		return remove(name, "")
	}
	if w.chance(0.6) {
		query += "&force=true"
	}
	return applyTo(name, query, text(full(w.object(name))))
}

// statusRequest draws a write of the status of a widget.
func (w *walk) statusRequest(name, query string) request {
	if w.chance(0.5) {
		o := object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": w.metadata(name), "status": w.status()}
		return applyTo(name+"/status", query+"&force=true", text(full(o)))
	}
	return patch(mergePatch, name+"/status?"+query, text(object{"metadata": object{"labels": object{"no": "no"}, "finalizers": nil}, "spec": object{"size": 5}, "status": w.status()}))
}

type object = map[string]any

func pick[T any](w *walk, options ...T) T { return options[w.IntN(len(options))] }

func (w *walk) chance(p float64) bool { return w.Float64() < p }

// set sets a field with a probability.
func set[T any](w *walk, in object, name string, p float64, options ...T) {
	if w.chance(p) {
		in[name] = pick(w, options...)
	}
}

// object draws a widget, of which some are invalid.
func (w *walk) object(name string) object {
	o := object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": w.metadata(name)}
	if w.chance(0.97) {
		o["spec"] = w.spec()
	}
	if w.chance(0.2) {
		o["status"] = w.status()
	}
	return o
}

func (w *walk) metadata(name string) object {
	m := object{"name": name}
	set[any](w, m, "labels", 0.3, object{"a": "b"}, object{"c": "d"}, object{"a": "e", "c": "d"}, nil)
	set[any](w, m, "annotations", 0.3, object{"a": "b"}, object{"c": "e"}, nil)
	set[any](w, m, "finalizers", 0.2, []any{"a.b/c"}, []any{"a.b/d", "a.b/c"}, []any{}, nil)
	set[any](w, m, "ownerReferences", 0.1, []any{object{"apiVersion": "v1", "kind": "X", "name": "n", "uid": "u1"}}, []any{object{"apiVersion": "v1", "kind": "X", "name": "n", "uid": "u2"}})
	return m
}

func (w *walk) spec() any {
	if w.chance(0.02) {
		return pick[any](w, nil, 1, []any{})
	}
	s := object{}
	set[any](w, s, "size", 0.85, 1, 2, 3, 3, 3, 99, 101, "x", nil)
	set[any](w, s, "color", 0.2, "red", "green", "blue", nil)
	set[any](w, s, "port", 0.2, 1, "x", 1.5, nil)
	set[any](w, s, "maybe", 0.1, "a", "b", nil)
	set[any](w, s, "maybeDef", 0.1, "a", "b", nil)
	set[any](w, s, "ratio", 0.1, 0.5, 1, 1.5, 2)
	set[any](w, s, "parts", 0.4, w.parts(), w.parts(), []any{})
	set[any](w, s, "set", 0.3, []any{1, 2}, []any{3}, []any{2, 3}, []any{})
	set[any](w, s, "atoms", 0.3, []any{"a"}, []any{"b", "b"}, []any{})
	set[any](w, s, "uniq", 0.2, []any{object{"a": 1}}, []any{object{"a": 2}, object{"a": 1}})
	set[any](w, s, "extra", 0.3, object{"known": 1}, object{"known": "x"}, object{"q": w.anything(3), "r": w.anything(2)}, nil)
	set[any](w, s, "limits", 0.3, object{"a": 1, "b": 2}, object{"b": 0}, object{"c": 3}, nil)
	set[any](w, s, "deep", 0.3, object{"a": object{"b": "x"}}, object{"a": object{"b": nil}}, object{"a": nil})
	set[any](w, s, "embedded", 0.1, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "a"}, "x": w.anything(2)}, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"labels": object{"a": "b"}}})
	set[any](w, s, "one", 0.1, object{"x": 1}, object{"w": 1}, object{"x": 1, "w": 2})
	set[any](w, s, "atomMap", 0.2, object{"a": "1"}, object{"b": "1"}, object{"a": "2", "b": "3"})
	set[any](w, s, "unknown", 0.05, 1)
	return s
}

// parts draws parts with different names, in any order.
func (w *walk) parts() (parts []any) {
	for _, i := range w.Perm(3)[:1+w.IntN(3)] {
		part := object{"name": names[i]}
		set[any](w, part, "count", 0.4, 1, 2, 3, nil)
		set[any](w, part, "tags", 0.3, []any{"x"}, []any{"y", "x"}, []any{"z"})
		parts = append(parts, part)
	}
	return parts
}

func (w *walk) status() object {
	s := object{}
	set[any](w, s, "size", 0.5, 1, 2)
	set[any](w, s, "conditions", 0.5, []any{object{"type": "A", "status": "T"}}, []any{object{"type": "A", "status": "F"}, object{"type": "B", "status": "T"}})
	return s
}

// anything draws a value that is nested at most so deep.
func (w *walk) anything(depth int) any {
	switch n := w.IntN(8); {
	case n == 0 && depth > 0:
		return object{"a": w.anything(depth - 1), "b": w.anything(depth - 1)}
	case n == 1 && depth > 0:
		return []any{w.anything(depth - 1), w.anything(depth - 1)}
	}
	return pick[any](w, 1, 2, "x", "y", true, nil, 1.5)
}

// full returns a value without members that are null, or empty objects, of which Kubernetes'
// merge makes null: the script says how the servers differ there.
func full(value any) any {
	switch v := value.(type) {
	case object:
		left := object{}
		for name, member := range v {
			member = full(member)
			if of, isObject := member.(object); member != nil && (!isObject || len(of) > 0) {
				left[name] = member
			}
		}
		return left
	case []any:
		left := []any{}
		for _, element := range v {
			if element = full(element); element != nil {
				left = append(left, element)
			}
		}
		return left
	}
	return value
}

func text(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // of values that the walk has made
	}
	return string(text)
}
