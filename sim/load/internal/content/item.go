package content

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

// Item is an object of the load.
type Item struct {
	Key     string
	Attrs   *Attributes
	Payload []byte
	// Due is when the write was to be made, Stored when it reached the storage,
	// both in nanoseconds since the run's epoch.
	Due, Stored int64
}

// Attributes are what selectors match on. They never change.
type Attributes struct {
	Labels labels.Set
	Fields fields.Set
}

// Schema says what items are. No two of them are equal, so that each write is a
// change.
func Schema() store.Schema[Item] {
	return store.Schema[Item]{
		Key:    func(i Item) string { return i.Key },
		Labels: func(i Item) labels.Set { return i.Attrs.Labels },
		Fields: func(i Item) fields.Set { return i.Attrs.Fields },
		Size:   func(i Item) int { return len(i.Payload) },
		Equal:  func(a, b Item) bool { return false },
	}
}
