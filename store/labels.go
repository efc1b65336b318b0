package store

import (
	"encoding/json"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/labels"
)

// Labels are the labels of an object. The zero value has none. They never change, take two
// words, and implement [labels.Labels], so that selectors match on them.
//
// They are a map, which [LabelsOf] keeps, or the values of [LabelNames], which many objects
// share: those take 32 bytes and 16 for each name, where a map takes 300. All methods are
// safe for concurrent use.
type Labels struct {
	_    [0]func() // == does not compile: see Equal
	held heldLabels
}

var _ labels.Labels = Labels{}

// heldLabels is a labelMap or *labelValues. Each is one pointer, so that to convert it to an
// interface allocates nothing.
type heldLabels interface {
	labels.Labels
	size() int
	appendTo([]LabelPair) []LabelPair
	// within reports whether other has all of them.
	within(other Labels) bool
}

// LabelPair is one label.
type LabelPair struct{ Name, Value string }

// LabelsOf returns the labels in set, which must not change any more.
func LabelsOf(set labels.Set) Labels {
	if len(set) == 0 {
		return Labels{}
	}
	return Labels{held: labelMap(set)}
}

// Has reports whether there is a label of that name.
func (l Labels) Has(name string) bool {
	_, there := l.Lookup(name)
	return there
}

// Get returns the value of the label of that name, "" if there is none.
func (l Labels) Get(name string) string {
	value, _ := l.Lookup(name)
	return value
}

// Lookup returns the value of the label of that name, and whether there is one.
func (l Labels) Lookup(name string) (value string, there bool) {
	if l.held == nil {
		return "", false
	}
	return l.held.Lookup(name)
}

// Len returns the number of labels.
func (l Labels) Len() int {
	if l.held == nil {
		return 0
	}
	return l.held.size()
}

// All ranges over the labels' names and values, in the order of the names.
func (l Labels) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		pairs := l.AppendTo(nil)
		slices.SortFunc(pairs, func(a, b LabelPair) int { return strings.Compare(a.Name, b.Name) })
		for _, p := range pairs {
			if !yield(p.Name, p.Value) {
				return
			}
		}
	}
}

// AppendTo appends the labels to pairs, in any order. If pairs has room for them it does not
// allocate.
func (l Labels) AppendTo(pairs []LabelPair) []LabelPair {
	if l.held == nil {
		return pairs
	}
	return l.held.appendTo(pairs)
}

// Set returns the labels as a map, nil if there are none. The map may be the object's own: it
// must not be changed.
func (l Labels) Set() labels.Set {
	if set, ok := l.held.(labelMap); ok {
		return labels.Set(set)
	}
	if l.Len() == 0 {
		return nil
	}
	return maps.Collect(l.All())
}

// String returns the labels as the selector that requires them, such as "app=web,tier=db".
func (l Labels) String() string { return l.Set().String() }

// MarshalJSON returns a JSON object with a member for each label, or null.
func (l Labels) MarshalJSON() ([]byte, error) { return json.Marshal(l.Set()) }

// UnmarshalJSON is the inverse of MarshalJSON. The error is that of [json.Unmarshal].
func (l *Labels) UnmarshalJSON(text []byte) error {
	var set labels.Set
	if err := json.Unmarshal(text, &set); err != nil {
		return err
	}
	*l = LabelsOf(set)
	return nil
}

// Equal reports whether l and other are the same names with the same values.
func (l Labels) Equal(other Labels) bool {
	if l.shares(other) {
		return true
	}
	return l.Len() == other.Len() && (l.held == nil || l.held.within(other))
}

// has reports whether there is a label of that name with that value.
func (l Labels) has(name, value string) bool {
	held, there := l.Lookup(name)
	return there && held == value
}

// shares reports whether l and other are the same map or the same values, by comparing
// addresses, or are both empty.
func (l Labels) shares(other Labels) bool {
	a, isMap := l.held.(labelMap)
	b, isOtherMap := other.held.(labelMap)
	if isMap || isOtherMap {
		return isMap && isOtherMap && reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
	}
	return l.held == other.held
}

// matched returns what a selector matches on: to convert l to [labels.Labels] would allocate.
func (l Labels) matched() labels.Labels {
	if l.held == nil {
		return labelMap(nil)
	}
	return l.held
}

// labelMap is labels in a map.
type labelMap map[string]string

func (m labelMap) Has(name string) bool {
	_, there := m[name]
	return there
}

func (m labelMap) Get(name string) string { return m[name] }

func (m labelMap) Lookup(name string) (string, bool) {
	value, there := m[name]
	return value, there
}

func (m labelMap) size() int { return len(m) }

func (m labelMap) appendTo(pairs []LabelPair) []LabelPair {
	for name, value := range m {
		pairs = append(pairs, LabelPair{name, value})
	}
	return pairs
}

func (m labelMap) within(other Labels) bool {
	for name, value := range m {
		if !other.has(name, value) {
			return false
		}
	}
	return true
}

// LabelNames are the names of labels that objects of one type may have, each once.
type LabelNames []string

// Labels returns the labels that have these values, one for each name in order; for "" there
// is no label. If before, those of the state that the object replaces, has the same values of
// the same names, it returns before and allocates nothing. It keeps n, which must not change
// any more, and does not keep values.
func (n *LabelNames) Labels(values []string, before Labels) Labels {
	prev, _ := before.held.(*labelValues)
	if prev != nil && prev.names != n && !slices.Equal(*prev.names, *n) {
		prev = nil
	}
	switch {
	case prev != nil && slices.Equal(prev.values, values):
		return before
	case !slices.ContainsFunc(values, func(value string) bool { return value != "" }):
		return Labels{}
	}
	l := &labelValues{names: n, values: slices.Clone(values)}
	if prev != nil {
		ShareStrings(l.values, prev.values)
	}
	return Labels{held: l}
}

// labelValues has a value for each of names; "" stands for a label that is not there.
type labelValues struct {
	names  *LabelNames
	values []string
}

func (v *labelValues) Has(name string) bool {
	_, there := v.Lookup(name)
	return there
}

func (v *labelValues) Get(name string) string {
	value, _ := v.Lookup(name)
	return value
}

func (v *labelValues) Lookup(name string) (string, bool) {
	i := slices.Index(*v.names, name)
	if i < 0 {
		return "", false
	}
	return v.values[i], v.values[i] != ""
}

func (v *labelValues) size() (n int) {
	for _, value := range v.values {
		if value != "" {
			n++
		}
	}
	return n
}

func (v *labelValues) appendTo(pairs []LabelPair) []LabelPair {
	for i, value := range v.values {
		if value != "" {
			pairs = append(pairs, LabelPair{(*v.names)[i], value})
		}
	}
	return pairs
}

func (v *labelValues) within(other Labels) bool {
	for i, value := range v.values {
		if value != "" && !other.has((*v.names)[i], value) {
			return false
		}
	}
	return true
}

// bytes is the memory that v takes without the text of the values.
func (v *labelValues) bytes() int {
	return int(unsafe.Sizeof(*v)) + len(v.values)*int(unsafe.Sizeof(""))
}
