package inflight

import "errors"

// FullError is the error of a request for which there is no place.
type FullError struct {
	Of Sort
	// PerUser: its user has as many as one user may have.
	PerUser bool
}

func (e FullError) Error() string {
	switch {
	case e.Of == Watch && e.PerUser:
		return "you have as many watches as one user may have"
	case e.Of == Watch:
		return "the server has as many watches as it may have"
	case e.PerUser:
		return "you have as many requests in flight as one user may have"
	}
	return "the server has as many requests in flight as it may have"
}

// Errors of bodies.
var (
	// ErrBodies is the error of a write whose body is not read, since the server reads as many as it may.
	ErrBodies = errors.New("the server has as many requests in flight as it may have")
	// ErrGivenUp is the error of a write whose body was given up for another one.
	ErrGivenUp = errors.New("the body has given way to others since it arrived too slowly: the server reads only so many at a time")
)
