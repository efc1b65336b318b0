package inflight

import "time"

// Request is a request that has a place, or asks for one. It is a pointer, or comparable as one is. The [Limiter]
// calls its methods while it holds its lock: they do not block, and do not call it.
type Request interface {
	// User is the name of the user that the request is counted for. It stays the same.
	User() string
	// Place is the place that the request has, which the Limiter alone reads and changes.
	Place() *Place
	// Sending returns since when the answer of a read has been sent, if it has begun.
	Sending() (since time.Time, sends bool)
	// CutOff breaks the answer off. It fails if that is not possible.
	CutOff() error
	// GiveUpBody makes reading the body of a write fail. It fails if that is not possible.
	GiveUpBody() error
}

// Place is where a request is counted. The zero value is for one that is not counted.
type Place uint8

const (
	none Place = iota
	amongReads
	amongWrites
	amongWatches
	amongArrivals   // a write, for as long as its body arrives
	amongDepartures // a write whose answer is sent, or a read that has made room for others
	amongUnadmitted // a request that had no place, while its answer is sent
)
