package content

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/sim/scenario"
)

// Maker makes items as the scenario describes them. It belongs to one goroutine.
type Maker struct {
	// Rand is the source of all random values, which its owner may use too.
	Rand    *rand.Rand
	objects *scenario.Objects
	// fields and labels are the names, sorted, so that values are always drawn in the
	// same order.
	fields, labels []string
	known          map[uint64]*Attributes
	files          map[[2]string]*Attributes
}

// maxKnown is the highest number of attributes that a maker keeps for sharing.
const maxKnown = 1 << 16

// NewMaker returns a maker whose items depend only on the description o, seed and number.
func NewMaker(o *scenario.Objects, seed, number uint64) *Maker {
	return &Maker{
		Rand: rand.New(rand.NewPCG(seed, number)), objects: o,
		fields: slices.Sorted(maps.Keys(o.Fields)), labels: slices.Sorted(maps.Keys(o.Labels)),
		known: map[uint64]*Attributes{}, files: map[[2]string]*Attributes{},
	}
}

// Object returns the nth object.
func (m *Maker) Object(n int) Item {
	return Item{Key: m.objects.Key(n), Attrs: m.Attributes(), Payload: m.Payload()}
}

// File returns the item for a version of a file of a trace.
func (m *Maker) File(key, version string) Item {
	at := [2]string{path.Dir(key), strings.TrimPrefix(path.Ext(key), ".")}
	a := m.files[at]
	if a == nil {
		a = &Attributes{Fields: fields.Set{"dir": at[0], "ext": at[1]}}
		m.files[at] = a
	}
	return Item{Key: key, Attrs: a, Payload: m.Payload(), Version: version, IsFile: true}
}

// Payload returns zero bytes. Their number is random, within the range of sizes.
func (m *Maker) Payload() []byte {
	size := m.objects.Size
	return make([]byte, size.Min+m.Rand.IntN(size.Max-size.Min+1))
}

// Attributes returns random attributes. Equal ones are shared, for the first maxKnown
// different ones.
func (m *Maker) Attributes() *Attributes {
	values := make([]int, 0, 8)
	for _, name := range m.fields {
		values = append(values, m.Rand.IntN(m.objects.Fields[name]))
	}
	for _, name := range m.labels {
		values = append(values, m.Rand.IntN(m.objects.Labels[name]))
	}
	var code uint64
	for _, v := range values {
		code = code*1_000_003 + uint64(v)
	}
	if a, ok := m.known[code]; ok && m.has(a, values) {
		return a
	}
	a := m.of(values)
	if len(m.known) < maxKnown {
		m.known[code] = a
	}
	return a
}

// of returns new attributes with the values, first those of the fields.
func (m *Maker) of(values []int) *Attributes {
	a := &Attributes{}
	if len(m.fields) > 0 {
		a.Fields = make(fields.Set, len(m.fields))
	}
	if len(m.labels) > 0 {
		a.Labels = make(labels.Set, len(m.labels))
	}
	for i, name := range m.fields {
		a.Fields[name] = scenario.Value(name, values[i])
	}
	for i, name := range m.labels {
		a.Labels[name] = scenario.Value(name, values[len(m.fields)+i])
	}
	return a
}

// has reports whether the attributes have the values, and not others with the same
// code.
func (m *Maker) has(a *Attributes, values []int) bool {
	for i, name := range m.fields {
		if a.Fields[name] != scenario.Value(name, values[i]) {
			return false
		}
	}
	for i, name := range m.labels {
		if a.Labels[name] != scenario.Value(name, values[len(m.fields)+i]) {
			return false
		}
	}
	return true
}
