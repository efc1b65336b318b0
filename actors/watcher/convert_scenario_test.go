package watcher_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// TestConvert_Scenarios runs testdata/convert. Its commands are:
//
//	watch <name>   what that watcher selects: "key: …", "prefix: …", "labels: …",
//	               "fields: …", one to a line
//	write          what happens, one to a line: create, update, delete or emit,
//	               then a key and attributes (a leading dot marks a field), or
//	               bookmark; "with" before it gives it the revision of the line
//	               before; prints what each watcher sees of it
func TestConvert_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/convert", func(t *testing.T, path string) {
		history := newHistory(t)
		var names []string
		filters := map[string]*store.Filter{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			switch d.Cmd {
			case "watch":
				name := d.CmdArgs[0].Key
				names, filters[name] = append(names, name), parseFilter(t, d.Input)
			case "write":
				for line := range strings.Lines(d.Input) {
					ev := history.write(strings.Fields(line))
					fmt.Fprintf(&out, "@%d %s\n", ev.Revision, strings.TrimSpace(line))
					for _, name := range names {
						if seen, ok := watcher.Convert(schema, filters[name], ev); ok {
							fmt.Fprintf(&out, "    %s: %s\n", name, show(seen))
						}
					}
				}
			default:
				t.Fatalf("unknown command %q", d.Cmd)
			}
			return out.String()
		})
	})
}

// show prints an event with the states that it carries.
func show(ev store.Event) string {
	s := ev.String()
	if ev.Object != nil {
		s += fmt.Sprintf(" %s@%d", value(ev.Object), ev.Object.Revision)
	}
	if ev.Prev != nil {
		s += fmt.Sprintf(", was %s@%d", value(ev.Prev), ev.Prev.Revision)
	}
	return s
}

func parseFilter(t *testing.T, input string) *store.Filter {
	var opts store.FilterOptions
	for line := range strings.Lines(input) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "key":
			opts.Key = value
		case "prefix":
			opts.Prefix = value
		case "labels":
			opts.Labels = value
		case "fields":
			opts.Fields = value
		default:
			t.Fatalf("unknown option %q", name)
		}
	}
	f, err := store.NewFilter(columns, opts)
	require.NoError(t, err)
	return f
}

// history makes the log's raw events out of writes.
type history struct {
	t        require.TestingT
	revision store.Revision
	objects  map[string]*store.Object
}

func newHistory(t require.TestingT) *history {
	return &history{t: t, objects: map[string]*store.Object{}}
}

// write takes a verb, a key and attributes, which the object's value repeats, so
// that it shows which state is seen.
func (h *history) write(words []string) store.Event {
	if words[0] == "bookmark" {
		return store.Event{Type: store.Bookmark, Revision: h.revision}
	}
	if words[0] == "with" {
		words = words[1:]
	} else {
		h.revision++
	}
	prev := h.objects[words[1]]
	o := h.object(words[1], words[2:])
	ev := store.Event{Revision: h.revision, Object: o}
	switch words[0] {
	case "create":
		require.Nil(h.t, prev, "%v", words)
		ev.Type = store.Added
	case "update":
		require.NotNil(h.t, prev, "%v", words)
		ev.Type, ev.Prev = store.Modified, prev
	case "delete":
		require.NotNil(h.t, prev, "%v", words)
		ev.Type, ev.Object, ev.Prev = store.Deleted, schema.Gone(prev, h.revision, o.Written), prev
		delete(h.objects, words[1])
		return ev
	case "emit":
		ev.Type = store.Emitted
		return ev
	default:
		require.Fail(h.t, "unknown write", "%v", words)
	}
	h.objects[words[1]] = o
	return ev
}

func (h *history) object(key string, attributes []string) *store.Object {
	o := &thing{Value: "{" + strings.Join(attributes, " ") + "}", Object: store.Object{
		Key: key, Revision: h.revision, Fields: make([]string, len(columns)), Written: at(h.revision),
	}}
	set := labels.Set{}
	for _, attribute := range attributes {
		name, value, _ := strings.Cut(attribute, "=")
		if field, ok := strings.CutPrefix(name, "."); ok {
			o.Fields[column(field)] = value
		} else {
			set[name] = value
		}
	}
	o.Labels = store.LabelsOf(set)
	return &o.Object
}
