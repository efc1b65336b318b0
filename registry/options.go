package registry

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
)

// FieldValidation says how fields of a body that the kind does not have, and repeated
// fields, are treated.
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

// WriteOptions are the options of a creation, an update or an apply.
type WriteOptions struct {
	// DryRun does everything but store the object.
	DryRun bool
	// Manager is the name that the writer gives itself, for managed fields. An apply must
	// have one.
	Manager string
	// Force makes an apply take the fields that other managers own.
	Force bool
	// MayCreate is called before an update or an apply creates the object, and refuses that by
	// an error. A replica calls it before it passes on one that may, which after an error
	// changes the object that there is, or nothing. Nil allows it. It may be called more than once.
	MayCreate func(ctx context.Context) error
	// Validation says how unknown and repeated fields of bodies are treated, and fields of values in
	// the process that [Config].Prune removes.
	Validation FieldValidation
	// Warn gets each warning for the writer; nil drops them. A write that is tried again
	// may repeat its warnings.
	Warn func(text string)
	// UID and Revision say which object, in which state, an update means. "" and zero
	// mean any.
	UID      string
	Revision engine.Revision
	// Patched: the body is made of the live object, as by a patch. A replica then has the server compare the revision
	// of that even if the body names none, so that a write in between is not undone.
	Patched bool
	// MaxBytes is how large an update, with a body or by a patch, and an apply may make an object, in bytes of
	// JSON. An object that is larger already may be written as long as it does not grow. The error is a
	// [*backend.TooLargeError]. Zero is no limit. A replica leaves this to the server that it passes writes on to.
	MaxBytes int64

	// applied: the draft has its managed fields from an apply.
	applied bool
	// unrecorded: managed fields are left out, for an object that is too large with
	// them.
	unrecorded bool
	// unread: the draft is a body, whose writer may not have read what it replaces.
	unread bool
	// untracked is why the managed fields stay as they were, nil if they do not.
	untracked error
}

func (o *WriteOptions) warn(texts ...string) {
	for _, text := range texts {
		if o.Warn != nil {
			o.Warn(text)
		}
	}
}

// warnedKey is that of the *WriteOptions whose writer [Warn] warns.
type warnedKey struct{}

// Warn gives the writer of an object a warning. ctx is that of a call of [Strategy].Validate; with
// another one it does nothing.
func Warn(ctx context.Context, text string) {
	if opts, _ := ctx.Value(warnedKey{}).(*WriteOptions); opts != nil {
		opts.warn(text)
	}
}

// DeleteOptions are the options of a deletion.
type DeleteOptions struct {
	// DryRun does everything but delete or mark the object.
	DryRun bool
	// UID and Revision say which object, in which state, is meant. "" and zero mean any.
	UID      string
	Revision engine.Revision
	// GracePeriodSeconds is the requested grace period; nil leaves it to [Strategy].Grace, and
	// a negative one is one second.
	GracePeriodSeconds *int64
	// Propagation says what becomes of the objects that the object owns: the garbage collector orphans
	// them, or deletes them before the object (Foreground) or after it (Background). "" keeps what the
	// object's finalizers orphan and foregroundDeletion say, and means Background if it has neither. It
	// replaces the Propagation of an earlier deletion, except while a grace period lasts that this one
	// does not shorten. Without [Config].GarbageCollection it is validated, and otherwise ignored.
	Propagation metav1.DeletionPropagation
}

// validate returns a [*BadRequestError] for the first option that is wrong.
func (o *DeleteOptions) validate() error {
	switch o.Propagation {
	case "", metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground:
	default:
		return badRequest("propagationPolicy is %q: give Orphan, Background or Foreground", o.Propagation)
	}
	return nil
}
