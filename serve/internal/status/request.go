package status

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// ofRequest is the answer to errors of what the client asked for.
func ofRequest(err error) *Error {
	var tooLarge *http.MaxBytesError
	var bad *registry.BadRequestError
	var patch *registry.PatchError
	switch {
	case errors.As(err, &tooLarge):
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d bytes", tooLarge.Limit))
	case errors.Is(err, backend.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case errors.As(err, &patch):
		return New(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, patch.Error(), 0)
	case errors.As(err, &bad), errors.Is(err, engine.ErrInvalidSelector), errors.Is(err, engine.ErrInvalidKey),
		errors.Is(err, engine.ErrInvalidContinue):
		return apierrors.NewBadRequest(err.Error())
	case errors.Is(err, engine.ErrInvalidList), errors.Is(err, engine.ErrInvalidWatch), errors.Is(err, engine.ErrInvalidRead):
		return New(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error(), 0)
	case errors.Is(err, engine.ErrUnsupported):
		return New(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the resource does not support this: "+err.Error(), 0)
	}
	return nil
}

// ofRevision is the answer to errors of revisions and of the cache.
func ofRevision(err error) *Error {
	var notReady *engine.NotReadyError
	switch {
	case errors.Is(err, engine.ErrExpired):
		return Expired(err)
	case errors.Is(err, engine.ErrFuture):
		s := apierrors.NewTimeoutError(err.Error(), 1)
		s.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
		return s
	case errors.As(err, &notReady):
		return New(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, err.Error(), seconds(notReady.RetryAfter))
	case errors.Is(err, engine.ErrNotReady), errors.Is(err, engine.ErrSlowConsumer), errors.Is(err, engine.ErrEngineClosed),
		errors.Is(err, engine.ErrWatchNotStarted):
		return TooMany(err.Error())
	}
	return nil
}

// Expired is the answer to a revision that is no longer kept. It tells the oldest
// revision that is, if known, so that a replica can start there.
func Expired(err error) *Error {
	s := apierrors.NewResourceExpired(err.Error())
	if expired, ok := errors.AsType[*store.ExpiredError](err); ok && expired.Oldest > 0 {
		s.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: registry.CauseOldestRevision, Field: "resourceVersion", Message: expired.Oldest.String(),
		}}}
	}
	return s
}

// seconds rounds up to whole seconds, at least one.
func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
