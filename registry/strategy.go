package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Ptr is what the pointer to a kind's Go type can do if the struct embeds
// metav1.TypeMeta and metav1.ObjectMeta. Go infers it.
type Ptr[T any] interface {
	*T
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

// Strategy says what may be written. All functions are optional, and run again
// when others write in between. old is nil for a creation; it is shared and must
// not be changed.
type Strategy[T any] struct {
	// Default fills in what was left out, after decoding.
	Default func(obj *T)
	// Prepare sets or resets fields before validation.
	Prepare func(ctx context.Context, obj, old *T)
	// Validate returns what is wrong, by field. Metadata is validated besides.
	Validate func(ctx context.Context, obj, old *T) field.ErrorList
	// Warn returns what the writer should know.
	Warn func(ctx context.Context, obj, old *T) []string
	// Canonicalize brings a valid object into the form that is stored.
	Canonicalize func(obj *T)
	// Grace returns how many seconds an object stays after a deletion that asked
	// for so many (nil: for none in particular), and whether at all. Nil deletes
	// at once.
	Grace func(obj *T, asked *int64) (seconds int64, graceful bool)
	// CreateOnUpdate lets an update create an object that is not there.
	CreateOnUpdate bool
	// RevisionRequired refuses updates that do not say of which revision.
	RevisionRequired bool
}

// Column is a column of the table that kubectl prints.
type Column[T any] struct {
	// Name is its heading, Type one of string, integer, number, boolean and date.
	Name, Type string
	// Format and Description are for clients; both may be empty.
	Format, Description string
	// Priority above 0 shows the column only in wide tables.
	Priority int
	// Value returns what the cell shows.
	Value func(obj *T) any
}

// Admitter decides on writes of all kinds alike: it may change the object, or
// refuse the write with an error.
type Admitter interface {
	Admit(ctx context.Context, a *Admission) error
}

// AdmitFunc is a function as an [Admitter].
type AdmitFunc func(ctx context.Context, a *Admission) error

// Admit calls f.
func (f AdmitFunc) Admit(ctx context.Context, a *Admission) error { return f(ctx, a) }

// Operation is what a write does.
type Operation string

// The operations.
const (
	OperationCreate Operation = "CREATE"
	OperationUpdate Operation = "UPDATE"
	OperationDelete Operation = "DELETE"
)

// Admission is a write to be decided on.
type Admission struct {
	Kind      Kind
	Operation Operation
	// Subresource is "status" or "".
	Subresource string
	// Object points to the value that is to be written, a *T, and may be changed;
	// nil for a deletion.
	Object any
	// Old points to the value that is there, nil for a creation. It is shared.
	Old any
	// DryRun: nothing will be stored.
	DryRun bool
}
