package status_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/status"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// widget is what the requests of these tests are about.
var widget = status.Subject{Resource: schema.GroupResource{Group: "example.com", Resource: "widgets"}, Name: "a", Verb: "update"}

// An error may match several others. What the client is to do next decides which of them is told.
func TestOf_ErrorThatMatchesSeveral(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: %w", engine.ErrConflict, store.ErrClosed), "503 ServiceUnavailable"},
		{fmt.Errorf("%w: %w", store.ErrClosed, engine.ErrEngineClosed), "429 TooManyRequests"},
		{fmt.Errorf("%w: %w", backend.ErrUncertain, engine.ErrConflict), "500 InternalError"},
		{fmt.Errorf("%w: %w", backend.ErrUncertain, context.DeadlineExceeded), "504 Timeout"},
		{fmt.Errorf("%w: %w", backend.ErrUncertain, apierrors.NewServiceUnavailable("busy")), "503 ServiceUnavailable"},
		{fmt.Errorf("%w: %w", backend.ErrDenied, apierrors.NewUnauthorized("no")), "503 ServiceUnavailable"},
		{&registry.AdmissionError{Cause: engine.ErrNotFound}, "403 Forbidden"},
		{&registry.AdmissionError{Cause: engine.ErrNotReady}, "429 TooManyRequests"},
		{fmt.Errorf("%w: %w", engine.ErrNotFound, context.DeadlineExceeded), "404 NotFound"},
	} {
		s := status.Of(fmt.Errorf("it is known that: %w", c.err), widget)
		require.Equal(t, c.want, fmt.Sprintf("%d %s", s.Code, s.Reason), c.err)
	}
}

// Errors of objects name the object, and an action that may have been done in part is not to be tried again.
func TestOf_TellsTheSubject(t *testing.T) {
	require.Equal(t, `widgets.example.com "a" not found`, status.Of(engine.ErrNotFound, widget).Message)
	acting := widget
	acting.Acts = true
	for about, want := range map[status.Subject]int32{widget: 2, acting: 0} {
		s := status.Of(errors.New("unplugged"), about)
		require.EqualValues(t, 500, s.Code)
		require.Contains(t, s.Message, "unplugged")
		require.Equal(t, want, s.Details.RetryAfterSeconds)
	}
}

// Storage may be what lacks it, such as a server that is not one of the protocol, and not the resource: the
// verb alone does not tell its user which.
func TestOf_TellsWhatIsNotSupported(t *testing.T) {
	s := status.Of(fmt.Errorf("list: %w: the resourceVersion is %q", engine.ErrUnsupported, "x"), widget)
	require.EqualValues(t, 405, s.Code)
	require.Equal(t, `the resource does not support this: list: unsupported: the resourceVersion is "x"`, s.Message)
}

// A text may be as large as a body, and an error may be the same for many requests: the answer has as
// much of it as clients show, and the error stays as it was.
func TestOf_LongTextsAreCutInTheAnswerAlone(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	causes := []metav1.StatusCause{{Message: long, Field: long}}
	given := &status.Error{ErrStatus: metav1.Status{Code: 422, Message: long, Details: &metav1.StatusDetails{Name: long, Causes: slices.Clone(causes)}}}
	s := status.Of(given, widget)
	for _, text := range []string{s.Message, s.Details.Name, s.Details.Causes[0].Message, s.Details.Causes[0].Field} {
		require.Less(t, len(text), 10_000)
		require.True(t, strings.HasPrefix(text, "xxx"), "it is the beginning of the text")
	}
	require.Equal(t, long, given.ErrStatus.Message)
	require.Equal(t, &metav1.StatusDetails{Name: long, Causes: causes}, given.ErrStatus.Details)
}

// Clients read the header, or the details.
func TestWrite_HeaderMirrorsTheDetails(t *testing.T) {
	for err, want := range map[error]string{
		&engine.NotReadyError{RetryAfter: 2500 * time.Millisecond}: "3",
		engine.ErrNotReady: "1",
		engine.ErrNotFound: "",
	} {
		w := httptest.NewRecorder()
		status.Write(w, status.Of(err, widget))
		require.Equal(t, want, w.Header().Get("Retry-After"))
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.Equal(t, want != "", strings.Contains(w.Body.String(), `"retryAfterSeconds":`+want), w.Body)
	}
}
