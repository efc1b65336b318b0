package dispatcher

import (
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

// columns are the fields that the tests' selectors name.
var columns = store.NewColumns(
	"metadata.name", "metadata.namespace", "node", "ns", "spec.nodeName", "status.phase", "x", "y",
)

// schema has what converting needs. The objects have no values.
var schema = &store.Schema{
	Fields: columns,
	Clone: func(o *store.Object) *store.Object {
		c := *o
		return &c
	},
}

// filter returns the filter of options that are right.
func filter(opts store.FilterOptions) *store.Filter {
	f, err := store.NewFilter(columns, opts)
	if err != nil {
		panic(err)
	}
	return f
}

// setField sets one of the columns.
func setField(o *store.Object, name, value string) {
	if o.Fields == nil {
		o.Fields = make([]string, len(columns))
	}
	o.Fields[slices.Index(columns, name)] = value
}

// history makes the log's raw events out of writes.
type history struct {
	t        require.TestingT
	revision store.Revision
	objects  map[string]*store.Object
	last     store.Event
}

func newHistory(t require.TestingT) *history {
	return &history{t: t, objects: map[string]*store.Object{}}
}

// write takes a verb (put, delete, emit or bookmark), a key and attributes; a
// leading dot marks a field.
func (h *history) write(words ...string) store.Event {
	if words[0] == "bookmark" {
		return store.Event{Type: store.Bookmark, Revision: h.revision}
	}
	h.revision++
	key, prev := words[1], h.objects[words[1]]
	ev := store.Event{Type: store.Modified, Revision: h.revision, Object: h.object(key, words[2:]), Prev: prev}
	switch words[0] {
	case "put":
		if prev == nil {
			ev.Type = store.Added
		}
		h.objects[key] = ev.Object
	case "delete":
		require.NotNil(h.t, prev, "%v", words)
		ev.Type, ev.Object = store.Deleted, schema.Gone(prev, h.revision, prev.Written)
		delete(h.objects, key)
	case "emit":
		ev.Type, ev.Prev = store.Emitted, nil
	default:
		require.Fail(h.t, "unknown write", "%v", words)
	}
	return ev
}

func (h *history) object(key string, attributes []string) *store.Object {
	o, set := &store.Object{Key: key, Revision: h.revision}, labels.Set{}
	for _, attribute := range attributes {
		name, value, _ := strings.Cut(attribute, "=")
		if field, ok := strings.CutPrefix(name, "."); ok {
			setField(o, field, value)
		} else {
			set[name] = value
		}
	}
	o.Labels = h.labels(set)
	return o
}

// labels returns the labels of set as a map or as values, by turns.
func (h *history) labels(set labels.Set) store.Labels {
	if h.revision%2 == 0 || slices.Contains(slices.Collect(maps.Values(set)), "") {
		return store.LabelsOf(set)
	}
	names, values := &store.LabelNames{}, []string(nil)
	for name, value := range set {
		*names, values = append(*names, name), append(values, value)
	}
	return names.Labels(values, store.Labels{})
}
