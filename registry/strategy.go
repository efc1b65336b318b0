package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Ptr constrains the pointer to a kind's Go type, which is a struct that embeds
// metav1.TypeMeta and metav1.ObjectMeta, but not in a pointer, or has their methods. Go infers it.
type Ptr[T any] interface {
	*T
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

// Strategy is the rules of a kind for writes. A replica does not apply them: those of the server that
// stores the objects hold. All functions are optional; they may run more than once for one write if
// other writes come in between. old is nil for a creation; it is shared and must not be changed. The
// spec and the status of obj may share maps, slices and pointers with old: set new ones there, and do
// not change what they hold.
type Strategy[T any] struct {
	// Default sets the defaults of a decoded object.
	Default func(obj *T)
	// Prepare sets or resets fields before validation.
	Prepare func(ctx context.Context, obj, old *T)
	// Validate returns what is wrong with obj, by field. The store validates metadata. For a
	// problem that only deserves a warning it may call [Warn].
	Validate func(ctx context.Context, obj, old *T) field.ErrorList
	// ValidateName returns what is wrong with a name, or with the base of generated ones if
	// prefix is true. Nil means that names are DNS subdomains. It may allow more than that, as
	// far as a path can have it: at most 253 bytes without slashes, backslashes, percent signs
	// and control characters, and neither "." nor "..". Kubernetes' own rules for the names of
	// its kinds have this form.
	ValidateName func(name string, prefix bool) []string
	// Warn returns warnings for the writer.
	Warn func(ctx context.Context, obj, old *T) []string
	// Canonicalize changes a valid object into the form that is stored.
	Canonicalize func(obj *T)
	// Grace returns the grace period of a deletion in seconds, and whether there is one.
	// asked is the period that the deletion requests, nil if it requests none. A nil
	// Grace deletes at once.
	Grace func(obj *T, asked *int64) (seconds int64, graceful bool)
	// Keep reports whether an object stays when it is deleted, as one with finalizers does: the deletion
	// marks it, and the update after which Keep returns false deletes it. Nil keeps none.
	Keep func(obj *T) bool
	// Terminate changes an object as a deletion marks it, such as its status. It is not called
	// for one that is marked already.
	Terminate func(obj *T)
	// CreateOnUpdate lets an update create an object that is not there.
	CreateOnUpdate bool
	// StatusOnly has a write of the status subresource leave the metadata as it was, as
	// with Kubernetes' custom resources. Without it such a write changes labels,
	// annotations, finalizers and owners, too.
	StatusOnly bool
	// NoGeneration leaves out metadata.generation, as Kubernetes does for kinds of which no controller observes
	// a spec, such as ConfigMaps.
	NoGeneration bool
	// RevisionRequired refuses bodies of updates without a resourceVersion, except of the
	// scale: a client that has not read the object would overwrite what others have written.
	// The function of [Store.Update] has the object, and needs none.
	RevisionRequired bool
}

// Column is a column of the table that kubectl prints.
type Column[T any] struct {
	// Name is the column's heading, Type one of string, integer, number, boolean and
	// date.
	Name, Type string
	// Format and Description are for clients; both may be empty.
	Format, Description string
	// Priority above 0 shows the column only in wide tables.
	Priority int
	// Value returns the cell's content.
	Value func(obj *T) any
}

// Admitter may change the object of a write, or refuse the write with an error, which is
// the cause of an [*AdmissionError]. One Admitter can serve all kinds.
//
// A server answers with 403 Forbidden and the error's text. There are two exceptions: an
// [*InvalidError], a [*BadRequestError] or a StatusError of k8s.io/apimachinery has its own
// status; and so has an error which means that the Admitter could not decide, because a
// context has ended or an engine does not serve reads.
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
	// Subresource is "", "status", "scale" or one of [Kind].Parts. Object and Old are whole objects for each.
	Subresource string
	// Object points to the value to be written, a *T, which may be changed as in a
	// [Strategy]; nil for a deletion.
	Object any
	// Old points to the stored value, nil for a creation. It is shared and must not be
	// changed.
	Old any
	// DryRun: nothing will be stored.
	DryRun bool
}
