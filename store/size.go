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
// half a microsecond in the long run. At most 262,144 parts of a value are visited.
// If it has more, as many are visited once again, spread over all slices and maps,
// from which these are extrapolated. The estimate is the larger of both, and at most
// a gibibyte besides the parts that are always measured.
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
	maxVisited = 1 << 18
	// maxDirect is how many pointers are followed in every value at most. Types whose
	// pointers meet again can have any number of ways to a part.
	maxDirect = 64
	// maxDepth is how many values are visited each within another one.
	maxDepth = 4096
	// maxEstimate is the largest estimate of what is not always measured.
	maxEstimate = 1 << 30
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
	bytes, visited := e.layout.measure(p)
	weight := min(e.full.Add(1), sampleWeight)
	e.sampled.Add((int64(bytes) - e.sampled.Load()) / weight)
	if n >= sampleFirst {
		e.due.Store(n + 1 + spread(n, int64(visited)/sampleCost))
	}
	return total + bytes
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

// measure returns the bytes of the rest, and how many parts were visited for that.
func (l *layout) measure(p unsafe.Pointer) (bytes, visited int) {
	full := measure{left: maxVisited}
	total := l.sample(p, &full)
	visited = maxVisited - full.left
	if full.short {
		probe := measure{left: maxVisited, probing: true}
		total = max(total, l.sample(p, &probe))
		visited += maxVisited - probe.left
	}
	return int(min(total, maxEstimate)), visited
}

// sample measures the rest by m.
func (l *layout) sample(p unsafe.Pointer, m *measure) (bytes float64) {
	if l == nil || !l.partial {
		return 0
	}
	rest := m.split(m.left, len(l.sampled)+len(l.pointers))
	for _, at := range l.sampled {
		bytes += m.value(reflect.NewAt(at.of, unsafe.Add(p, at.offset)).Elem(), rest.next())
	}
	for _, r := range l.pointers {
		if to := *(*unsafe.Pointer)(unsafe.Add(p, r.offset)); to != nil {
			bytes += r.to.sample(to, m)
		}
	}
	return bytes
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

// measure looks at all parts of a value, or at some if it is probing.
//
// A probe gives each element of a slice or map the same share of the parts that it may visit, and what
// the elements before have left of theirs. If the first elements could use all up, the others would
// count like them: in a document, where one field of each object has nearly all that is in it, the error
// would multiply on each level.
type measure struct {
	// left is the number of parts that may still be visited.
	left int
	// depth is how many values are visited each within another one.
	depth   int
	probing bool
	// short: there were more parts than might be visited.
	short bool
}

// leastShare is how many parts each element may have that a probe looks at. Of a slice or map with
// more elements than that allows it looks at fewer.
const leastShare = 32

// value returns the bytes that v points to. A probe visits about as many parts of it as its share.
func (m *measure) value(v reflect.Value, share int) (bytes float64) {
	m.left--
	switch t := v.Type(); v.Kind() {
	case reflect.String:
		return float64(allocated(v.Len()))
	case reflect.Slice:
		return float64(allocated(v.Cap()*int(t.Elem().Size()))) + m.elements(v, share-1)
	case reflect.Array:
		return m.elements(v, share-1)
	case reflect.Struct:
		return m.fields(v, share-1)
	case reflect.Pointer:
		if !v.IsNil() && t != locationType {
			return float64(allocated(int(t.Elem().Size()))) + m.within(v.Elem(), share-1)
		}
	case reflect.Interface:
		if held := v.Elem(); held.IsValid() {
			if held.Kind() != reflect.Pointer {
				bytes = float64(allocated(int(held.Type().Size())))
			}
			return bytes + m.within(held, share-1)
		}
	case reflect.Map:
		return m.entries(v, share-1)
	}
	return 0
}

// within returns what a value contains, and 0 if it may not be visited any more.
func (m *measure) within(v reflect.Value, share int) float64 {
	if m.looks(1, share) == 0 {
		return 0
	}
	m.depth++
	bytes := m.value(v, share)
	m.depth--
	return bytes
}

// looks returns at how many of n elements to look.
func (m *measure) looks(n, share int) int {
	switch tooDeep := m.depth >= maxDepth; {
	case m.probing && (share <= 0 || tooDeep):
		return 0
	case m.probing:
		return min(n, max(1, share/leastShare))
	case m.left <= 0 || tooDeep:
		m.short = true
		return 0
	}
	return n
}

// fields returns what the fields of v point to.
func (m *measure) fields(v reflect.Value, share int) (bytes float64) {
	if v.Type() == timeType {
		return 0
	}
	rest := m.split(share, v.NumField())
	for i := range v.NumField() {
		bytes += m.value(v.Field(i), rest.next())
	}
	return bytes
}

// elements returns what the elements of v point to. A probe looks at some that are spread evenly.
func (m *measure) elements(v reflect.Value, share int) (bytes float64) {
	n := v.Len()
	if n == 0 || plain(v.Type().Elem()) {
		return 0
	}
	looks := m.looks(n, share)
	rest := m.split(share, looks)
	for i := range looks {
		first := int(uint64(i) * uint64(n) / uint64(looks))
		somewhere := int(uint(m.left) % uint(n/looks))
		bytes += m.within(v.Index(first+somewhere), rest.next())
		if m.short {
			return bytes
		}
	}
	return bytes * float64(n) / float64(max(1, looks))
}

// entries returns what a map takes, and what its keys and elements point to.
func (m *measure) entries(v reflect.Value, share int) (bytes float64) {
	if v.IsNil() {
		return 0
	}
	t, n := v.Type(), v.Len()
	own := float64(mapBytes(n, int(t.Key().Size()+t.Elem().Size())))
	if n == 0 || plain(t.Key()) && plain(t.Elem()) {
		return own
	}
	looks := m.looks(n, share)
	rest := m.split(share, looks)
	for it := v.MapRange(); rest.among > 0 && it.Next(); {
		each := rest.next()
		bytes += m.value(it.Key(), each/2) + m.within(it.Value(), each-1)
		if m.short {
			return own + bytes
		}
	}
	return own + bytes*float64(n)/float64(max(1, looks))
}

// split is a share that is split among parts which are visited one after the other.
type split struct {
	of *measure
	// end is what is left of all parts when the share is used up.
	end, among int
}

func (m *measure) split(share, among int) split { return split{m, m.left - share, among} }

// next returns the share of the next part.
func (s *split) next() int {
	share := (s.of.left - s.end) / s.among
	s.among--
	return share
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
