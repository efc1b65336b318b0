package registry

import (
	"errors"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Item is one state of one object, shared and immutable. Two Items are equal if they are
// the same state, so an Item can be a key of a cache of encodings.
//
// The zero Item is not an object: its JSON is an error, and besides that only IsZero may be
// called.
type Item struct {
	object *store.Object
	of     *form
}

// Weak returns a pointer that does not keep the state. It is the key of a cache whose values are far
// smaller than the objects: states that have no other reference can be freed.
func (i Item) Weak() weak.Pointer[store.Object] { return weak.Make(i.object) }

// IsZero reports whether there is no object.
func (i Item) IsZero() bool { return i.object == nil }

// Key returns the object's key.
func (i Item) Key() string { return i.object.Key }

// Revision returns the revision of the state; that of a dry run is the one of the object before, zero if
// there was none.
func (i Item) Revision() engine.Revision { return i.object.Revision }

// Meta returns the object's metadata, which must not be changed. The resourceVersion in
// it is empty: see Revision.
func (i Item) Meta() metav1.Object { return i.of.meta(i.object) }

// Kind returns the object's kind.
func (i Item) Kind() *Kind { return &i.of.kind }

// JSON returns the object as JSON, with apiVersion, kind and resourceVersion. Every call
// encodes it again. The error is that of the kind's encoding, or its panic as a
// [*usercode.PanicError].
func (i Item) JSON() ([]byte, error) { return i.encode(false) }

// LeanJSON is JSON without metadata.managedFields, which only clients that apply need.
// The error is the same.
func (i Item) LeanJSON() ([]byte, error) { return i.encode(true) }

var errNoItem = errors.New("there is no object")

func (i Item) encode(lean bool) ([]byte, error) {
	if i.IsZero() {
		return nil, errNoItem
	}
	version := ""
	if i.object.Revision > 0 {
		version = i.object.Revision.String()
	}
	return i.of.layout.Encode(i.object, version, lean)
}

// AppendCells appends the values of the kind's columns, which Name and Age are not among.
func (i Item) AppendCells(to []any) []any {
	for _, cell := range i.of.cells {
		to = append(to, cell(i.object))
	}
	return to
}
