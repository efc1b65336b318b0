package accept

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/serve/internal/status"
)

// Media types of answers.
const (
	JSON        = "application/json"
	EventStream = "text/event-stream"
)

// Shape is the form of the objects in an answer.
type Shape uint8

// The shapes.
const (
	Whole     Shape = iota
	Table           // in version v1 of its group
	BetaTable       // in version v1beta1, which differs only in name
	Partial         // metadata alone
	Events          // whole, as Server-Sent Events

	aggregated // of discovery
)

// IsTable reports whether it is a table, in either version.
func (s Shape) IsTable() bool { return s == Table || s == BetaTable }

// Form is how objects are sent: in a shape, and lean, without their managed fields, or with them.
type Form struct {
	Shape Shape
	Lean  bool
}

// Objects returns the form of objects that the client prefers. The error is a Status.
func Objects(r *http.Request) (Form, error) {
	return negotiate(r, (*clause).objectShape)
}

// Watch is Objects for the events of a watch.
func Watch(r *http.Request) (Form, error) {
	return negotiate(r, (*clause).watchShape)
}

// Aggregated reports whether the client prefers all groups in one document, where discovery has both forms. The
// error is a Status.
func Aggregated(r *http.Request) (bool, error) {
	as, err := negotiate(r, (*clause).discoveryShape)
	return as.Shape == aggregated, err
}

// negotiate returns the form that the client prefers of those whose shapes shapeOf finds. The error is a Status.
func negotiate(r *http.Request, shapeOf func(*clause) (Shape, bool)) (Form, error) {
	header := r.Header.Values("Accept")
	if strings.TrimSpace(strings.Join(header, "")) == "" {
		return Form{}, nil
	}
	for _, c := range clauses(header) {
		if s, ok := shapeOf(&c); ok {
			return Form{s, c.lean()}, nil
		}
	}
	return Form{}, status.New(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+JSON+", also as Table or PartialObjectMetadata of meta.k8s.io/v1; for watches "+EventStream, 0)
}
