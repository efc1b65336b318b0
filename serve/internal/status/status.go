package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/internal/excerpt"
	"github.com/watchmill/watchmill/registry"
)

// Error is an error that is already a Status.
type Error = apierrors.StatusError

// BadRequest is the answer to a request that the server cannot understand, or does not take, with a text as of
// [fmt.Sprintf].
func BadRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// NotServed is the answer to paths that do not exist.
func NotServed() error {
	return New(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource", 0)
}

// New returns a Status of a failure; retryAfter is in seconds, zero for none.
func New(code int, reason metav1.StatusReason, message string, retryAfter int) *Error {
	s := metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
	if retryAfter > 0 {
		s.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter)}
	}
	return &Error{ErrStatus: s}
}

// TooMany is the answer to a request that the client is to send again after a second.
func TooMany(message string) *Error {
	return New(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message, 1)
}

// Subject is what a Status is about.
type Subject struct {
	Resource schema.GroupResource
	Name     string
	Verb     string
	Acts     bool // the request is an action of [registry.NewAction]
}

// nameOf returns the name of the object under key that an error is about, unless the request names one: the
// deletion of a collection does not.
func (s *Subject) nameOf(key string) string {
	_, name := registry.SplitKey(key)
	return cmp.Or(s.Name, name)
}

// Of returns the Status that an error is answered with.
func Of(err error, about Subject) *metav1.Status {
	s := ErrorOf(err, about).ErrStatus
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	s.Message = Cut(s.Message)
	if d := s.Details; d != nil {
		details := *d
		details.Name, details.Causes = Cut(d.Name), slices.Clone(d.Causes)
		for i := range details.Causes {
			cause := &details.Causes[i]
			cause.Message, cause.Field = Cut(cause.Message), Cut(cause.Field)
		}
		s.Details = &details
	}
	return &s
}

// maxMessage is the longest text of a Status, in bytes. Errors of decoding and validation
// contain the value, or have a key of it in the path of the field, which may be as large as a body.
const maxMessage = 8 << 10

// Cut returns a text, or as much of a long one as a Status may have of it.
func Cut(text string) string { return excerpt.Of(text, maxMessage) }

// Write answers with a Status.
func Write(w http.ResponseWriter, s *metav1.Status) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if d := s.Details; d != nil && d.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	w.WriteHeader(int(s.Code))
	text, err := json.Marshal(s)
	if err != nil {
		return // cannot happen: a Status is strings and numbers
	}
	_, _ = w.Write(append(text, '\n')) // a client that is gone needs no answer
}
