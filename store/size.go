package store

import (
	"math/bits"
	"reflect"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"
)

// SizeOf returns an estimator of the bytes that values of type t take in memory
// with all that they point to: strings, slices, maps, pointers and interfaces are
// followed. It is for [Schema].Size where the user gives none. The estimator takes
// a pointer to the value, as [Schema].Pointer returns it, and is safe for
// concurrent use.
//
// Strings, slices of plain elements and structs of these are measured in every
// value, in a few nanoseconds each. Other slices, maps and interfaces are measured
// in the first 16 values and then in samples, the rarer the larger the values are;
// in between they count as their recent average. So an estimate takes less than
// half a microsecond in the long run. At most 4,096 parts of a value are visited,
// and the rest of a slice or map is extrapolated.
//
// Memory that two values share counts in both. Functions and channels count as
// pointers.
func SizeOf(t reflect.Type) func(pointer any) int {
	e := &sizeEstimator{shallow: int(t.Size()), layout: (&layouts{left: maxDirect}).of(t, nil)}
	return func(pointer any) int { return e.size(reflect.ValueOf(pointer).UnsafePointer()) }
}

const (
	// sampleFirst is how many values are measured in full before sampling begins.
	sampleFirst = 16
	// sampleCost is the number of parts visited per value, averaged over those not
	// measured in full.
	sampleCost = 2
	// sampleWeight is the number of samples in the moving average.
	sampleWeight = 16
	// maxVisited is the largest number of parts visited in one value.
	maxVisited = 4096
	// maxDirect is how many pointers are followed in every value at most. Types whose
	// pointers meet again can have any number of ways to a part.
	maxDirect = 64
)

// sizeEstimator measures values of one type.
type sizeEstimator struct {
	shallow int
	layout  *layout
	// came counts the values, full those that were measured in full. The next full
	// measurement is when came reaches due.
	came, full, due atomic.Int64
	// sampled is their average size in the parts that are not always measured.
	sampled atomic.Int64
}

func (e *sizeEstimator) size(p unsafe.Pointer) int {
	total := e.shallow + e.layout.direct(p)
	if e.layout == nil || !e.layout.partial {
		return total
	}
	n := e.came.Add(1)
	if n < e.due.Load() {
		return total + int(e.sampled.Load())
	}
	m := measure{left: maxVisited}
	e.layout.sample(p, &m)
	weight := min(e.full.Add(1), sampleWeight)
	e.sampled.Add((int64(m.bytes) - e.sampled.Load()) / weight)
	if n >= sampleFirst {
		e.due.Store(n + 1 + spread(n, int64(maxVisited-m.left)/sampleCost))
	}
	return total + m.bytes
}

// spread returns a number from 0 to twice the mean that depends on n alone, and on
// each bit of it. Samples at even distances would see one kind only of values that
// come in turn.
func spread(n, mean int64) int64 {
	h := uint64(n) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return int64((h ^ h>>32) % uint64(2*mean+1))
}

// layout is where values of a type have pointers, by offset. It is nil for a type
// without pointers.
type layout struct {
	strings  []uintptr
	slices   []span // of plain elements
	pointers []reference
	sampled  []place
	// partial: sampled is not empty, here or behind a pointer.
	partial bool
}

type span struct{ offset, element uintptr }

type reference struct {
	offset, size uintptr
	to           *layout
}

type place struct {
	offset uintptr
	of     reflect.Type
}

// direct returns the bytes of the always measured parts that the value at p points
// to.
func (l *layout) direct(p unsafe.Pointer) (n int) {
	if l == nil {
		return 0
	}
	for _, offset := range l.strings {
		n += allocated(len(*(*string)(unsafe.Add(p, offset))))
	}
	for _, s := range l.slices {
		n += allocated(cap(*(*[]struct{})(unsafe.Add(p, s.offset))) * int(s.element))
	}
	for _, r := range l.pointers {
		if to := *(*unsafe.Pointer)(unsafe.Add(p, r.offset)); to != nil {
			n += allocated(int(r.size)) + r.to.direct(to)
		}
	}
	return n
}

// sample measures the rest.
func (l *layout) sample(p unsafe.Pointer, m *measure) {
	if l == nil || !l.partial {
		return
	}
	for _, at := range l.sampled {
		m.value(reflect.NewAt(at.of, unsafe.Add(p, at.offset)).Elem())
	}
	for _, r := range l.pointers {
		if to := *(*unsafe.Pointer)(unsafe.Add(p, r.offset)); to != nil {
			r.to.sample(to, m)
		}
	}
}

// layouts makes the layout of a type and of those that it points to.
type layouts struct {
	left int // pointers that may still be followed in every value
}

// of returns the layout of a type that is reached through pointers to the types in
// path.
func (m *layouts) of(t reflect.Type, path []reflect.Type) *layout {
	if plain(t) {
		return nil
	}
	l := &layout{}
	m.add(l, t, 0, append(path, t))
	return l
}

// add adds to l what a value of type t at an offset points to.
func (m *layouts) add(l *layout, t reflect.Type, offset uintptr, path []reflect.Type) {
	switch kind := t.Kind(); {
	case plain(t):
	case kind == reflect.String:
		l.strings = append(l.strings, offset)
	case kind == reflect.Slice && plain(t.Elem()):
		l.slices = append(l.slices, span{offset, t.Elem().Size()})
	case kind == reflect.Pointer && m.left > 0 && !slices.Contains(path, t.Elem()):
		m.left--
		to := m.of(t.Elem(), path)
		l.pointers = append(l.pointers, reference{offset, t.Elem().Size(), to})
		l.partial = l.partial || to != nil && to.partial
	case kind == reflect.Struct:
		for i := range t.NumField() {
			m.add(l, t.Field(i).Type, offset+t.Field(i).Offset, path)
		}
	case kind == reflect.Array && t.Len() <= 16:
		for i := range t.Len() {
			m.add(l, t.Elem(), offset+uintptr(i)*t.Elem().Size(), path)
		}
	default:
		l.sampled = append(l.sampled, place{offset, t})
		l.partial = true
	}
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	locationType = reflect.TypeFor[*time.Location]()
)

// plain reports whether values of type t point to nothing of their own. Times
// share their locations with all others.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Interface:
		return false
	case reflect.Pointer:
		return t == locationType
	case reflect.Array:
		return t.Len() == 0 || plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if t != timeType && !plain(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}

// measure is a value being measured in full.
type measure struct {
	bytes int
	// left is the number of parts that may still be visited.
	left int
}

// value counts what v points to.
func (m *measure) value(v reflect.Value) {
	m.left--
	switch t := v.Type(); v.Kind() {
	case reflect.String:
		m.bytes += allocated(v.Len())
	case reflect.Slice:
		m.bytes += allocated(v.Cap() * int(t.Elem().Size()))
		m.elements(v)
	case reflect.Array:
		m.elements(v)
	case reflect.Struct:
		for i := range v.NumField() {
			if t != timeType {
				m.value(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() && t != locationType {
			m.bytes += allocated(int(t.Elem().Size()))
			m.within(v.Elem())
		}
	case reflect.Interface:
		if held := v.Elem(); held.IsValid() {
			if held.Kind() != reflect.Pointer {
				m.bytes += allocated(int(held.Type().Size()))
			}
			m.within(held)
		}
	case reflect.Map:
		m.entries(v)
	}
}

// within counts what a value contains, unless left is used up.
func (m *measure) within(v reflect.Value) {
	if m.left > 0 {
		m.value(v)
	}
}

// elements counts what the elements of v point to.
func (m *measure) elements(v reflect.Value) {
	if plain(v.Type().Elem()) {
		return
	}
	before, n := m.bytes, v.Len()
	for i := range n {
		if m.left <= 0 {
			m.extrapolate(before, i, n)
			return
		}
		m.value(v.Index(i))
	}
}

// entries counts a map.
func (m *measure) entries(v reflect.Value) {
	if v.IsNil() {
		return
	}
	t := v.Type()
	m.bytes += mapBytes(v.Len(), int(t.Key().Size()+t.Elem().Size()))
	if plain(t.Key()) && plain(t.Elem()) {
		return
	}
	before, done := m.bytes, 0
	for it := v.MapRange(); it.Next(); done++ {
		if m.left <= 0 {
			m.extrapolate(before, done, v.Len())
			return
		}
		m.value(it.Key())
		m.within(it.Value())
	}
}

// extrapolate counts n parts when only done of them were measured, since the
// sum was before.
func (m *measure) extrapolate(before, done, n int) {
	if done > 0 {
		m.bytes += (m.bytes - before) / done * (n - done)
	}
}

// mapBytes estimates what a map of n entries of some bytes takes: groups of eight
// with a byte of control each, filled to seven eighths, in powers of two.
func mapBytes(n, entry int) int {
	const header = 48
	slots := 8
	if n > 8 {
		slots = 1 << bits.Len(uint(n*8/7))
	}
	return header + slots*(entry+1)
}

// allocated returns about what the allocator takes for n bytes: its classes are
// 16 bytes apart at first, then an eighth of their size.
func allocated(n int) int {
	switch {
	case n <= 8:
		return n
	case n <= 128:
		return (n + 15) &^ 15
	}
	step := 1 << (bits.Len(uint(n-1)) - 4)
	return (n + step - 1) &^ (step - 1)
}
