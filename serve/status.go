package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/excerpt"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// statusError is an error that is already a Status.
type statusError = apierrors.StatusError

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// notServed is the answer to paths that do not exist.
func notServed() error {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource", 0)
}

// failure returns a Status; retryAfter is in seconds, zero for none.
func failure(code int, reason metav1.StatusReason, message string, retryAfter int) *statusError {
	s := metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
	if retryAfter > 0 {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter)}
	}
	return &statusError{ErrStatus: s}
}

func tooMany(message string) *statusError {
	return failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message, 1)
}

// subject is what a Status is about.
type subject struct {
	resource schema.GroupResource
	name     string
	verb     string
	acts     bool // the request is an action of [registry.NewAction]
}

// statusOf returns the Status that an error is answered with.
func statusOf(err error, about subject) *metav1.Status {
	status := statusErrorOf(err, about).ErrStatus
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Message = cut(status.Message)
	if d := status.Details; d != nil {
		details := *d
		details.Name, details.Causes = cut(d.Name), slices.Clone(d.Causes)
		for i := range details.Causes {
			cause := &details.Causes[i]
			cause.Message, cause.Field = cut(cause.Message), cut(cause.Field)
		}
		status.Details = &details
	}
	return &status
}

// maxMessage is the longest text of a Status, in bytes. Errors of decoding and validation
// contain the value, or have a key of it in the path of the field, which may be as large as a body.
const maxMessage = 8 << 10

func cut(text string) string { return excerpt.Of(text, maxMessage) }

func statusErrorOf(err error, about subject) *statusError {
	if s := endedStatus(err); s != nil {
		return s
	}
	if s := readyStatus(err); s != nil {
		return s
	}
	if s := refusedStatus(err, about); s != nil {
		return s
	}
	if s := uncertainStatus(err); s != nil {
		return s
	}
	if s := objectStatus(err, about); s != nil {
		return s
	}
	if s := requestStatus(err); s != nil {
		return s
	}
	if s := revisionStatus(err); s != nil {
		return s
	}
	return serverStatus(err, about)
}

// endedStatus is the answer if storage has ended for good, whatever has ended it; nil for other errors. It
// has no Retry-After, since clients would then send the request some ten times again in vain. An engine
// that was closed is another matter: its kind's next store, or a server that has the kind, may answer next.
func endedStatus(err error) *statusError {
	var notReady *engine.NotReadyError
	final := errors.As(err, &notReady) && notReady.Final
	if !final && !errors.Is(err, store.ErrClosed) || errors.Is(err, engine.ErrEngineClosed) {
		return nil
	}
	return apierrors.NewServiceUnavailable(err.Error())
}

// readyStatus is the Status that an error is or has, nil for others. A 401 of another server,
// such as the origin of a replica, is about this server's credentials: the client, whose own
// are right, would log in again for it. If the other server's failure may pass, and has kept a cache
// from being ready, the cache says when to try again, as it does after any other failure of storage.
func readyStatus(err error) *statusError {
	var ready *statusError
	switch {
	case !errors.As(err, &ready), errors.Is(err, engine.ErrNotReady) && errors.Is(err, backend.ErrUnavailable):
		return nil
	case ready.ErrStatus.Code == http.StatusUnauthorized && errors.Is(err, backend.ErrDenied):
		return apierrors.NewServiceUnavailable("another server refuses this server's own credentials: " + err.Error())
	}
	return completed(ready)
}

// completed returns the Status of a user's function as that of a failure: its code, which may be
// left out as in Kubernetes, is that of the answer.
func completed(of *statusError) *statusError {
	s := &statusError{ErrStatus: of.ErrStatus}
	s.ErrStatus.Status = metav1.StatusFailure
	if s.ErrStatus.Code < 400 || s.ErrStatus.Code > 599 {
		s.ErrStatus.Code = http.StatusInternalServerError
	}
	return s
}

// refusedStatus is the answer to a write that an admitter refuses, nil for other errors and
// for those that have an answer of their own. An admitter's ErrNotFound or ErrConflict is
// not about the object of the request.
func refusedStatus(err error, about subject) *statusError {
	refused, ok := errors.AsType[*registry.AdmissionError](err)
	if !ok || errors.As(err, new(*registry.InvalidError)) || errors.As(err, new(*registry.BadRequestError)) ||
		errors.Is(err, usercode.ErrPanic) || timedOut(err) || revisionStatus(err) != nil {
		return nil
	}
	return apierrors.NewForbidden(about.resource, about.name, refused.Cause)
}

// uncertainStatus is the answer to a write that may have been done, nil for other errors. It has no
// Retry-After, since clients would then send the write again: a POST with generateName creates a
// second object, and other writes meet their own first one as a conflict. The answer of another
// server, which may have one, is readyStatus'.
func uncertainStatus(err error) *statusError {
	switch {
	case !backend.Uncertain(err):
		return nil
	case timedOut(err):
		return apierrors.NewTimeoutError(err.Error(), 0)
	}
	return apierrors.NewInternalError(err)
}

// objectStatus is the answer to errors about the object, nil for others.
func objectStatus(err error, about subject) *statusError {
	var invalid *registry.InvalidError
	var generated *registry.GeneratedNameError
	var owned *registry.FieldConflictError
	switch {
	case errors.As(err, &invalid):
		return invalidStatus(invalid)
	case errors.As(err, &owned):
		return ownedStatus(owned)
	case errors.As(err, &generated):
		return apierrors.NewGenerateNameConflict(about.resource, generated.Base, 1)
	case errors.Is(err, engine.ErrNotFound):
		return apierrors.NewNotFound(about.resource, about.name)
	case errors.Is(err, engine.ErrExists):
		return apierrors.NewAlreadyExists(about.resource, about.name)
	case errors.Is(err, engine.ErrConflict), errors.Is(err, engine.ErrPrecondition):
		return apierrors.NewConflict(about.resource, about.name, conflictCause(err))
	}
	return nil
}

// invalidStatus is the answer to an object that breaks rules. Its errors are cut before their texts are
// put together, which takes time by the square of their length.
func invalidStatus(invalid *registry.InvalidError) *statusError {
	short := make(field.ErrorList, 0, len(invalid.Errors))
	for _, e := range invalid.Errors {
		short = append(short, shortened(e))
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: invalid.Kind.Group, Kind: invalid.Kind.Kind}, cut(invalid.Name), short)
}

// shortened returns an error whose texts are no longer than maxMessage.
func shortened(e *field.Error) *field.Error {
	short, text := *e, e.ErrorBody()
	short.Field = cut(e.Field)
	if len(text) > maxMessage {
		short.BadValue, short.Detail = field.OmitValueType{}, cut(strings.TrimPrefix(text, e.Type.String()+": "))
	}
	return &short
}

// ownedStatus is the answer to an apply of fields that other managers own.
func ownedStatus(owned *registry.FieldConflictError) *statusError {
	var causes []metav1.StatusCause
	for _, c := range owned.Conflicts {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: c.Field, Message: c.Message})
	}
	return apierrors.NewApplyConflict(causes, owned.Message)
}

// conflictCause is the text of a conflict without the key, which the Status has.
func conflictCause(err error) error {
	if c, ok := errors.AsType[*registry.ConflictError](err); ok {
		return errors.New(c.Reason)
	}
	return err
}

// requestStatus is the answer to errors of what the client asked for.
func requestStatus(err error) *statusError {
	var tooLarge *http.MaxBytesError
	var bad *registry.BadRequestError
	var patch *registry.PatchError
	switch {
	case errors.As(err, &tooLarge):
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d bytes", tooLarge.Limit))
	case errors.Is(err, backend.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.As(err, &patch):
		return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, patch.Error(), 0)
	case errors.As(err, &bad), errors.Is(err, engine.ErrInvalidSelector), errors.Is(err, engine.ErrInvalidKey),
		errors.Is(err, engine.ErrInvalidContinue):
		return apierrors.NewBadRequest(err.Error())
	case errors.Is(err, engine.ErrInvalidList), errors.Is(err, engine.ErrInvalidWatch), errors.Is(err, engine.ErrInvalidRead):
		return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error(), 0)
	case errors.Is(err, engine.ErrUnsupported):
		return failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the resource does not support this", 0)
	}
	return nil
}

// revisionStatus is the answer to errors of revisions and of the cache.
func revisionStatus(err error) *statusError {
	var notReady *engine.NotReadyError
	switch {
	case errors.Is(err, engine.ErrExpired):
		return expiredStatus(err)
	case errors.Is(err, engine.ErrFuture):
		s := apierrors.NewTimeoutError(err.Error(), 1)
		s.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
		return s
	case errors.As(err, &notReady):
		return failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, err.Error(), seconds(notReady.RetryAfter))
	case errors.Is(err, engine.ErrNotReady), errors.Is(err, engine.ErrSlowConsumer), errors.Is(err, engine.ErrEngineClosed),
		errors.Is(err, engine.ErrWatchNotStarted):
		return tooMany(err.Error())
	}
	return nil
}

// expiredStatus is the answer to a revision that is no longer kept. It tells the oldest
// revision that is, if known, so that a replica can start there.
func expiredStatus(err error) *statusError {
	s := apierrors.NewResourceExpired(err.Error())
	if expired, ok := errors.AsType[*store.ExpiredError](err); ok && expired.Oldest > 0 {
		s.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: registry.CauseOldestRevision, Field: "resourceVersion", Message: expired.Oldest.String(),
		}}}
	}
	return s
}

// lasting are failures of storage that a request which is sent again meets again.
var lasting = []error{backend.ErrFailed, backend.ErrReadOnly, backend.ErrCorrupt, backend.ErrUndecodable, backend.ErrDenied}

// serverStatus is the answer to everything else. Failures that last, and those of users' code, have no
// Retry-After, since clients would then send the request some ten times again. An action may have been
// done in part, unless its error says that it can be tried again.
func serverStatus(err error, about subject) *statusError {
	switch {
	case errors.Is(err, engine.ErrHandlerPanic), errors.Is(err, usercode.ErrPanic):
		return apierrors.NewInternalError(err)
	case timedOut(err):
		return apierrors.NewTimeoutError("the request did not finish in time", 0)
	case about.acts && !backend.Retryable(err), slices.ContainsFunc(lasting, func(one error) bool { return errors.Is(err, one) }):
		return apierrors.NewInternalError(err)
	}
	s := apierrors.NewServerTimeout(about.resource, about.verb, 2)
	s.ErrStatus.Message += ": " + err.Error()
	return s
}

// timedOut reports whether an error is the end of a context or a deadline.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded)
}

// seconds rounds up to whole seconds, at least one.
func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// writeStatus answers with a Status.
func writeStatus(w http.ResponseWriter, status *metav1.Status) {
	h := w.Header()
	h.Set("Content-Type", jsonType)
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	w.WriteHeader(int(status.Code))
	text, err := json.Marshal(status)
	if err != nil {
		return // cannot happen: a Status is strings and numbers
	}
	_, _ = w.Write(append(text, '\n')) // a client that is gone needs no answer
}
