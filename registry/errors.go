package registry

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
)

// CauseOldestRevision is the type of a cause in a Status that says that a revision is too
// old. The cause's message is the oldest revision that the server still has, in decimal.
const CauseOldestRevision metav1.CauseType = "OldestResourceVersion"

// InvalidError reports the fields of an object that break the rules.
type InvalidError struct {
	Kind Kind
	Name string
	// Errors are at most the first hundred, and one that says that there are more, if a [Store] has
	// found them. They then have no values of more than about 4 KiB, and no more than the first 4 KiB
	// of texts.
	Errors field.ErrorList
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s %q is invalid: %v", e.Kind.Kind, e.Name, e.Errors.ToAggregate())
}

// BadRequestError reports a request that is wrong, whatever is stored.
type BadRequestError struct {
	// Reason is what is wrong and what would be right.
	Reason string
	// Cause is the error beneath, if there is one.
	Cause error
}

func (e *BadRequestError) Error() string { return e.Reason }

// Unwrap returns Cause.
func (e *BadRequestError) Unwrap() error { return e.Cause }

func badRequest(format string, args ...any) error {
	return &BadRequestError{Reason: fmt.Sprintf(format, args...)}
}

// AdmissionError reports a write that an [Admitter] has refused. A server answers it with
// 403 Forbidden, unless Cause says otherwise; see [Admitter].
type AdmissionError struct {
	// Key is that of the object, which the text of Cause need not name. If the store was to generate the
	// name, it ends with what was given of that.
	Key   string
	Cause error
}

func (e *AdmissionError) Error() string { return e.Cause.Error() }

// Unwrap returns Cause.
func (e *AdmissionError) Unwrap() error { return e.Cause }

// PatchError reports a patch that does not apply to the object.
type PatchError struct{ Cause error }

func (e *PatchError) Error() string { return fmt.Sprintf("the patch does not apply: %v", e.Cause) }

// Unwrap returns Cause.
func (e *PatchError) Unwrap() error { return e.Cause }

// ConflictError reports that the object is not the one, or not in the state, that the
// caller means. errors.Is(err, [engine.ErrConflict]) is true.
type ConflictError struct {
	Key    string
	Reason string
}

func (e *ConflictError) Error() string { return fmt.Sprintf("%s: %s", e.Key, e.Reason) }

// Is makes errors.Is(err, engine.ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == engine.ErrConflict }

// FieldConflictError reports the fields of an applied configuration that other managers
// own with other values. errors.Is(err, [engine.ErrConflict]) is true. To resolve it, set
// WriteOptions.Force, which takes the fields, or leave the fields out or at their values.
type FieldConflictError struct {
	// Message is the whole text: the fields, and the managers that own them.
	Message   string
	Conflicts []FieldConflict
}

// FieldConflict is a field that another manager owns.
type FieldConflict struct {
	// Field is the field's path, such as .spec.size; Message names the manager.
	Field, Message string
}

func (e *FieldConflictError) Error() string { return e.Message }

// Is makes errors.Is(err, engine.ErrConflict) true.
func (e *FieldConflictError) Is(target error) bool { return target == engine.ErrConflict }

// GeneratedNameError reports that several names generated from Base were all taken.
// errors.Is(err, [engine.ErrExists]) is true. Trying again may help.
type GeneratedNameError struct{ Base string }

func (e *GeneratedNameError) Error() string {
	return fmt.Sprintf("no name generated from %q was free in %d attempts: try again", e.Base, nameAttempts)
}

// Is makes errors.Is(err, engine.ErrExists) true.
func (e *GeneratedNameError) Is(target error) bool { return target == engine.ErrExists }
