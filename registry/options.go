package registry

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
)

// FieldValidation says what becomes of fields of a body that the kind does not
// have, or that are there twice.
type FieldValidation string

// The values of FieldValidation. "" is Warn.
const (
	IgnoreUnknown  FieldValidation = "Ignore"
	WarnUnknown    FieldValidation = "Warn"
	RefuseUnknown  FieldValidation = "Strict"
	defaultUnknown FieldValidation = ""
)

// Valid reports whether v is one of the values.
func (v FieldValidation) Valid() bool {
	return slices.Contains([]FieldValidation{IgnoreUnknown, WarnUnknown, RefuseUnknown, defaultUnknown}, v)
}

// WriteOptions qualifies a creation or an update.
type WriteOptions struct {
	// DryRun does everything but store.
	DryRun bool
	// Manager is what the writer calls itself; managed fields name it. An apply must
	// have one.
	Manager string
	// Force makes an apply take the fields that other managers own.
	Force bool
	// MayCreate is asked before an update or an apply creates the object, and refuses
	// by an error; nil allows it. It may be asked more than once.
	MayCreate func(ctx context.Context) error
	// Validation is for bodies.
	Validation FieldValidation
	// Warn is told what the writer should know; nil ignores it. It may be told the
	// same again if others write in between.
	Warn func(text string)
	// UID and Revision say which object an update means; "" and zero any.
	UID      string
	Revision engine.Revision

	// applied: the draft has its managed fields from an apply.
	applied bool
	// unrecorded: managed fields are left out, for an object that is too large with
	// them.
	unrecorded bool
}

func (o *WriteOptions) warn(texts ...string) {
	for _, text := range texts {
		if o.Warn != nil {
			o.Warn(text)
		}
	}
}

// DeleteOptions qualifies a deletion.
type DeleteOptions struct {
	// DryRun does everything but delete.
	DryRun bool
	// UID and Revision say which object is meant; "" and zero any.
	UID      string
	Revision engine.Revision
	// Grace is how many seconds the object should stay; nil leaves it to the
	// kind.
	Grace *int64
	// Propagation says what becomes of what the object owns. There is no garbage
	// collector: it is validated, and that is all.
	Propagation metav1.DeletionPropagation
}

// validate returns a [*BadRequestError] for the first option that is wrong.
func (o *DeleteOptions) validate() error {
	switch o.Propagation {
	case "", metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground:
	default:
		return badRequest("propagationPolicy is %q: give Orphan, Background or Foreground", o.Propagation)
	}
	if o.Grace != nil && *o.Grace < 0 {
		return badRequest("gracePeriodSeconds is %d: give zero or more", *o.Grace)
	}
	return nil
}
