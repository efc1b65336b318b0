package dispatcher

import (
	"strings"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

type (
	event  = store.Event[string]
	stored = store.Object[string]
)

// history makes the log's raw events out of writes.
type history struct {
	t        require.TestingT
	revision store.Revision
	objects  map[string]*stored
	last     event
}

func newHistory(t require.TestingT) *history {
	return &history{t: t, objects: map[string]*stored{}}
}

// write takes a verb (put, delete, emit or bookmark), a key and attributes; a
// leading dot marks a field.
func (h *history) write(words ...string) event {
	if words[0] == "bookmark" {
		return event{Type: store.Bookmark, Revision: h.revision}
	}
	h.revision++
	key, prev := words[1], h.objects[words[1]]
	ev := event{Type: store.Modified, Revision: h.revision, Object: h.object(key, words[2:]), Prev: prev}
	switch words[0] {
	case "put":
		if prev == nil {
			ev.Type = store.Added
		}
		h.objects[key] = ev.Object
	case "delete":
		require.NotNil(h.t, prev, "%v", words)
		ev.Type, ev.Object = store.Deleted, prev.Gone(h.revision, prev.Written)
		delete(h.objects, key)
	case "emit":
		ev.Type, ev.Prev = store.Emitted, nil
	default:
		require.Fail(h.t, "unknown write", "%v", words)
	}
	return ev
}

func (h *history) object(key string, attributes []string) *stored {
	o := &stored{Key: key, Revision: h.revision, Labels: labels.Set{}, Fields: fields.Set{}}
	for _, attribute := range attributes {
		name, value, _ := strings.Cut(attribute, "=")
		if field, ok := strings.CutPrefix(name, "."); ok {
			o.Fields[field] = value
		} else {
			o.Labels[name] = value
		}
	}
	return o
}
