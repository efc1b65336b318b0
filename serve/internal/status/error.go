package status

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// ErrorOf is [Of] as an error, with its texts in full.
func ErrorOf(err error, about Subject) *Error {
	if s := ofEndedStorage(err); s != nil {
		return s
	}
	if s := ofStatus(err); s != nil {
		return s
	}
	if s := ofRefusal(err, about); s != nil {
		return s
	}
	if s := ofUncertainWrite(err); s != nil {
		return s
	}
	if s := ofObject(err, about); s != nil {
		return s
	}
	if s := ofRequest(err); s != nil {
		return s
	}
	if s := ofRevision(err); s != nil {
		return s
	}
	return ofServer(err, about)
}

// ofEndedStorage is the answer if storage has ended for good, whatever has ended it; nil for other errors. It
// has no Retry-After, since clients would then send the request some ten times again in vain. An engine
// that was closed is another matter: its kind's next store, or a server that has the kind, may answer next.
func ofEndedStorage(err error) *Error {
	var notReady *engine.NotReadyError
	final := errors.As(err, &notReady) && notReady.Final
	if !final && !errors.Is(err, store.ErrClosed) || errors.Is(err, engine.ErrEngineClosed) {
		return nil
	}
	return apierrors.NewServiceUnavailable(err.Error())
}

// ofStatus is the Status that an error is or has, nil for others. A 401 of another server,
// such as the origin of a replica, is about this server's credentials: the client, whose own
// are right, would log in again for it. If the other server's failure may pass, and has kept a cache
// from being ready, the cache says when to try again, as it does after any other failure of storage.
func ofStatus(err error) *Error {
	var ready *Error
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
func completed(of *Error) *Error {
	s := &Error{ErrStatus: of.ErrStatus}
	s.ErrStatus.Status = metav1.StatusFailure
	if s.ErrStatus.Code < 400 || s.ErrStatus.Code > 599 {
		s.ErrStatus.Code = http.StatusInternalServerError
	}
	return s
}

// ofRefusal is the answer to a write that an admitter refuses, nil for other errors and
// for those that have an answer of their own. An admitter's ErrNotFound or ErrConflict is
// not about the object of the request.
func ofRefusal(err error, about Subject) *Error {
	refused, ok := errors.AsType[*registry.AdmissionError](err)
	if !ok || errors.As(err, new(*registry.InvalidError)) || errors.As(err, new(*registry.BadRequestError)) ||
		errors.Is(err, usercode.ErrPanic) || timedOut(err) || ofRevision(err) != nil {
		return nil
	}
	return apierrors.NewForbidden(about.Resource, about.nameOf(refused.Key), refused.Cause)
}

// ofUncertainWrite is the answer to a write that may have been done, nil for other errors. It has no
// Retry-After, since clients would then send the write again: a POST with generateName creates a
// second object, and other writes meet their own first one as a conflict. The answer of another
// server, which may have one, is ofStatus'.
func ofUncertainWrite(err error) *Error {
	switch {
	case !backend.Uncertain(err):
		return nil
	case timedOut(err):
		return apierrors.NewTimeoutError(err.Error(), 0)
	}
	return apierrors.NewInternalError(err)
}

// lasting are failures of storage that a request which is sent again meets again.
var lasting = []error{backend.ErrFailed, backend.ErrReadOnly, backend.ErrCorrupt, backend.ErrUndecodable, backend.ErrDenied}

// ofServer is the answer to everything else. Failures that last, and those of users' code, have no
// Retry-After, since clients would then send the request some ten times again. An action may have been
// done in part, unless its error says that it can be tried again.
func ofServer(err error, about Subject) *Error {
	switch {
	case errors.Is(err, engine.ErrHandlerPanic), errors.Is(err, usercode.ErrPanic):
		return apierrors.NewInternalError(err)
	case timedOut(err):
		return apierrors.NewTimeoutError("the request did not finish in time", 0)
	case about.Acts && !backend.Retryable(err), slices.ContainsFunc(lasting, func(one error) bool { return errors.Is(err, one) }):
		return apierrors.NewInternalError(err)
	}
	s := apierrors.NewServerTimeout(about.Resource, about.Verb, 2)
	s.ErrStatus.Message += ": " + err.Error()
	return s
}

// timedOut reports whether an error is the end of a context or a deadline.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded)
}
