package remote

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// StatusError is a failure that a server answered with. It matches the error of storage
// that means the same, and wraps an [*apierrors.StatusError], so that a server that
// passes it on answers as the origin did.
type StatusError struct {
	// Request is the method and the path; the method and the URL if the failure came as
	// an event of a watch.
	Request string
	Status  metav1.Status
	// header is that of the answer; nil if there was none.
	header http.Header
	// said is a body that is not a Status but a line of text; else "".
	said string
}

func (e *StatusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("%s: %d %s", e.Request, e.Status.Code, e.Status.Reason)) // a proxy gives no reason
	if message := cmp.Or(e.Status.Message, http.StatusText(int(e.Status.Code))); message != "" {
		text += ": " + message
	}
	if e.said != "" {
		text += fmt.Sprintf(": %q", e.said)
	}
	return text
}

// Unwrap returns the status as the error type of k8s.io/apimachinery.
func (e *StatusError) Unwrap() error { return &apierrors.StatusError{ErrStatus: e.Status} }

// Is makes errors.Is true for the error of storage that means the same.
func (e *StatusError) Is(target error) bool { return target == e.meaning() }

// As makes errors.As find the [*registry.InvalidError], [*registry.BadRequestError] or
// [*registry.FieldConflictError] that the status stands for.
func (e *StatusError) As(target any) (found bool) {
	switch target := target.(type) {
	case **registry.InvalidError:
		*target, found = e.invalid()
	case **registry.BadRequestError:
		if found = e.Status.Reason == metav1.StatusReasonBadRequest; found {
			*target = &registry.BadRequestError{Reason: e.Status.Message}
		}
	case **registry.FieldConflictError:
		*target, found = e.owned()
	}
	return found
}

// invalid returns the error of the fields that the status has as its causes, if there are any.
func (e *StatusError) invalid() (*registry.InvalidError, bool) {
	d := e.Status.Details
	if e.Status.Reason != metav1.StatusReasonInvalid || d == nil || len(d.Causes) == 0 {
		return nil, false
	}
	invalid := &registry.InvalidError{Kind: registry.Kind{Group: d.Group, Kind: d.Kind}, Name: d.Name}
	for _, c := range d.Causes {
		of := field.ErrorType(c.Type)
		detail := strings.TrimPrefix(c.Message, of.String()+": ") // the text of the error begins with it
		invalid.Errors = append(invalid.Errors, &field.Error{Type: of, Field: c.Field, BadValue: field.OmitValueType{}, Detail: detail})
	}
	return invalid, true
}

// owned returns the error of the fields that other managers own, if there are any.
func (e *StatusError) owned() (*registry.FieldConflictError, bool) {
	if e.Status.Details == nil {
		return nil, false
	}
	conflict := &registry.FieldConflictError{Message: e.Status.Message}
	for _, c := range e.Status.Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			conflict.Conflicts = append(conflict.Conflicts, registry.FieldConflict{Field: c.Field, Message: c.Message})
		}
	}
	return conflict, len(conflict.Conflicts) > 0
}

// meaning returns the error of storage that the status stands for, or nil.
func (e *StatusError) meaning() error {
	switch reason := e.Status.Reason; {
	case reason == metav1.StatusReasonNotFound:
		return store.ErrNotFound
	case reason == metav1.StatusReasonAlreadyExists:
		return store.ErrExists
	case reason == metav1.StatusReasonConflict:
		return store.ErrConflict
	case reason == metav1.StatusReasonExpired, reason == metav1.StatusReasonGone, reason == "" && e.Status.Code == http.StatusGone:
		return store.ErrExpired
	case e.isFuture():
		return store.ErrFuture
	case e.Status.Code == http.StatusRequestEntityTooLarge:
		return backend.ErrTooLarge
	case e.Status.Code == http.StatusUnauthorized, e.Status.Code == http.StatusForbidden:
		return backend.ErrDenied
	case reason == metav1.StatusReasonMethodNotAllowed: // not of a proxy, whose refusal may pass
		return store.ErrUnsupported
	case e.passing():
		return backend.ErrUnavailable
	}
	return nil
}

// isFuture reports whether the revision that was asked for is in the future.
func (e *StatusError) isFuture() bool {
	return e.Status.Details != nil && slices.ContainsFunc(e.Status.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeResourceVersionTooLarge
	})
}

// oldest returns the oldest revision that the server keeps, zero if it does not say.
func (e *StatusError) oldest() store.Revision {
	if e.Status.Details == nil {
		return 0
	}
	for _, c := range e.Status.Details.Causes {
		if c.Type == registry.CauseOldestRevision {
			rev, err := strconv.ParseUint(c.Message, 10, 64)
			if err != nil {
				return 0 // not the number that comes with ErrRange, which would be in the future
			}
			return store.Revision(rev)
		}
	}
	return 0
}

// passing reports whether the same request may succeed later.
func (e *StatusError) passing() bool {
	return e.Status.Code == http.StatusTooManyRequests || e.Status.Code >= http.StatusInternalServerError
}

// statusErrorOf returns the error of an answer with that body, which may not be a Status, as when
// a proxy answers. A Retry-After in seconds becomes the Status' own if that has none.
func statusErrorOf(request string, answer *http.Response, body []byte) *StatusError {
	e, code := &StatusError{Request: request, header: answer.Header}, answer.StatusCode
	if json.Unmarshal(body, &e.Status) != nil || e.Status.Kind != "Status" || e.Status.Code == 0 {
		e.Status = metav1.Status{Status: metav1.StatusFailure, Message: http.StatusText(code)}
		if code == http.StatusGone {
			e.Status.Reason = metav1.StatusReasonExpired
		}
		e.said = lineOf(body)
	}
	if n, err := strconv.ParseInt(answer.Header.Get("Retry-After"), 10, 32); err == nil && n > 0 {
		if e.Status.Details == nil {
			e.Status.Details = &metav1.StatusDetails{}
		}
		e.Status.Details.RetryAfterSeconds = cmp.Or(e.Status.Details.RetryAfterSeconds, int32(n))
	}
	e.Status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	e.Status.Code = int32(code)
	return e
}

// maxLine is how many bytes of text an error quotes.
const maxLine = 200

// lineOf returns a body that is a short line of text, such as that of a server with TLS that
// is called without it; "" for others, such as the page of a proxy.
func lineOf(body []byte) string {
	text := strings.TrimSpace(string(body))
	unprintable := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if len(text) > maxLine || strings.HasPrefix(text, "<") || strings.ContainsFunc(text, unprintable) {
		return ""
	}
	return text
}

// FrameError reports that a server sent something that is not an event of the kind. The
// watch ends, since trying again would not help.
type FrameError struct {
	// Request is the method and the URL of the watch.
	Request string
	Cause   error
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("%s: the server sent something that is not an event: %v", e.Request, e.Cause)
}

// Unwrap returns Cause.
func (e *FrameError) Unwrap() error { return e.Cause }

// SizeError reports an answer, other than of a watch, with more bytes than the
// configuration allows, even one that is small as long as it is compressed.
type SizeError struct {
	// Request is the method and the URL.
	Request string
	// Limit is how many bytes are allowed.
	Limit int
	// Field is the field of [Config] that allows more.
	Field string
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: the server's answer is larger than %d bytes; if it is right, raise remote.Config.%s", e.Request, e.Limit, e.Field)
}
