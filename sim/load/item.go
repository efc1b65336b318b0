package load

import (
	"math/rand/v2"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/sim/scenario"
)

// item is an object of the load.
type item struct {
	key     string
	attrs   *attrs
	payload []byte
	// due is when the write was to be made, stored when it reached the storage,
	// both in nanoseconds since the run's epoch.
	due, stored int64
}

// attrs is what selectors match on. It is shared by all items that have the same
// and never changes.
type attrs struct {
	labels labels.Set
	fields fields.Set
}

// maker makes items as the scenario describes them. It belongs to one goroutine.
type maker struct {
	objects *scenario.Objects
	rand    *rand.Rand
	// fields and labels are the names, sorted, so that chance falls on them in
	// the same order always.
	fields, labels []string
	known          map[uint64]*attrs
	files          map[[2]string]*attrs
}

// maxKnown bounds the attributes that are remembered to be shared.
const maxKnown = 1 << 16

func newMaker(o *scenario.Objects, seed, number uint64) *maker {
	return &maker{
		objects: o, rand: rand.New(rand.NewPCG(seed, number)),
		fields: sortedKeys(o.Fields), labels: sortedKeys(o.Labels),
		known: map[uint64]*attrs{}, files: map[[2]string]*attrs{},
	}
}

// draw returns attributes by chance. Equal ones are, as far as memory allows,
// the same.
func (m *maker) draw() *attrs {
	var code uint64
	values := make([]int, 0, 8)
	for _, name := range m.fields {
		values = append(values, m.rand.IntN(m.objects.Fields[name]))
	}
	for _, name := range m.labels {
		values = append(values, m.rand.IntN(m.objects.Labels[name]))
	}
	for _, v := range values {
		code = code*1_000_003 + uint64(v)
	}
	if a, ok := m.known[code]; ok && m.has(a, values) {
		return a
	}
	a := m.attrsOf(values)
	if len(m.known) < maxKnown {
		m.known[code] = a
	}
	return a
}

func (m *maker) attrsOf(values []int) *attrs {
	a := &attrs{}
	if len(m.fields) > 0 {
		a.fields = make(fields.Set, len(m.fields))
	}
	if len(m.labels) > 0 {
		a.labels = make(labels.Set, len(m.labels))
	}
	for i, name := range m.fields {
		a.fields[name] = scenario.Value(name, values[i])
	}
	for i, name := range m.labels {
		a.labels[name] = scenario.Value(name, values[len(m.fields)+i])
	}
	return a
}

// has reports whether the attributes are those, and not others of like code.
func (m *maker) has(a *attrs, values []int) bool {
	for i, name := range m.fields {
		if a.fields[name] != scenario.Value(name, values[i]) {
			return false
		}
	}
	for i, name := range m.labels {
		if a.labels[name] != scenario.Value(name, values[len(m.fields)+i]) {
			return false
		}
	}
	return true
}

// payload returns as many bytes as chance wants.
func (m *maker) payload() []byte {
	size := m.objects.Size
	return make([]byte, size.Min+m.rand.IntN(size.Max-size.Min+1))
}

// object returns the nth object.
func (m *maker) object(n int) item {
	return item{key: m.objects.Key(n), attrs: m.draw(), payload: m.payload()}
}

// file returns the item that a trace's key names.
func (m *maker) file(key string) item {
	at := [2]string{path.Dir(key), strings.TrimPrefix(path.Ext(key), ".")}
	a := m.files[at]
	if a == nil {
		a = &attrs{fields: fields.Set{"dir": at[0], "ext": at[1]}}
		m.files[at] = a
	}
	return item{key: key, attrs: a, payload: m.payload()}
}
