package status

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// ofObject is the answer to errors about the object, nil for others.
func ofObject(err error, about Subject) *Error {
	var invalid *registry.InvalidError
	var generated *registry.GeneratedNameError
	var owned *registry.FieldConflictError
	switch {
	case errors.As(err, &invalid):
		return ofInvalid(invalid)
	case errors.As(err, &owned):
		return ofOwned(owned)
	case errors.As(err, &generated):
		return apierrors.NewGenerateNameConflict(about.Resource, generated.Base, 1)
	case errors.Is(err, engine.ErrNotFound):
		return apierrors.NewNotFound(about.Resource, about.Name)
	case errors.Is(err, engine.ErrExists):
		return apierrors.NewAlreadyExists(about.Resource, about.Name)
	case errors.Is(err, engine.ErrConflict), errors.Is(err, engine.ErrPrecondition):
		return ofConflict(err, about)
	}
	return nil
}

// ofInvalid is the answer to an object that breaks rules. Its errors are cut before their texts are
// put together, which takes time by the square of their length.
func ofInvalid(invalid *registry.InvalidError) *Error {
	short := make(field.ErrorList, 0, len(invalid.Errors))
	for _, e := range invalid.Errors {
		short = append(short, shortened(e))
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: invalid.Kind.Group, Kind: invalid.Kind.Kind}, Cut(invalid.Name), short)
}

// shortened returns an error whose texts are no longer than maxMessage.
func shortened(e *field.Error) *field.Error {
	short, text := *e, e.ErrorBody()
	short.Field = Cut(e.Field)
	if len(text) > maxMessage {
		short.BadValue, short.Detail = field.OmitValueType{}, Cut(strings.TrimPrefix(text, e.Type.String()+": "))
	}
	return &short
}

// ofOwned is the answer to an apply of fields that other managers own.
func ofOwned(owned *registry.FieldConflictError) *Error {
	var causes []metav1.StatusCause
	for _, c := range owned.Conflicts {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: c.Field, Message: c.Message})
	}
	return apierrors.NewApplyConflict(causes, owned.Message)
}

// ofConflict is the answer to a write of another object, or of another state, than there is. It has the name
// once, without the key that is in the text of the error.
func ofConflict(err error, about Subject) *Error {
	if c, ok := errors.AsType[*registry.ConflictError](err); ok {
		return apierrors.NewConflict(about.Resource, about.nameOf(c.Key), errors.New(c.Reason))
	}
	return apierrors.NewConflict(about.Resource, about.Name, err)
}
