package layout

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
)

// equalities compares values whose types are known only when they are compared, because an
// interface holds them. It is safe for concurrent use.
type equalities struct{ byType sync.Map }

// of returns functions that compare values of type t.
func (q *equalities) of(t reflect.Type) conversion.Equalities {
	if known, ok := q.byType.Load(t); ok {
		return known.(conversion.Equalities)
	}
	e := equality.Semantic.Copy()
	q.addOpaque(e, t, map[reflect.Type]bool{})
	known, _ := q.byType.LoadOrStore(t, e)
	return known.(conversion.Equalities)
}

// equal compares the values in two interfaces. The types that JSON is decoded to
// need no reflection.
func (q *equalities) equal(a, b any) bool {
	switch a := a.(type) {
	case nil, bool, string, int64, float64:
		return a == b
	case []any:
		b, same := b.([]any)
		return same && slices.EqualFunc(a, b, q.equal)
	case map[string]any:
		b, same := b.(map[string]any)
		return same && maps.EqualFunc(a, b, q.equal)
	}
	t := reflect.TypeOf(a)
	return t == reflect.TypeOf(b) && q.of(t).DeepEqual(a, b)
}
