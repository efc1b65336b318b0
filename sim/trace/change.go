package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Op is what a change does to its key.
type Op uint8

// The operations. The zero value is none of them.
const (
	// Put gives the key a version, whether it had one or not.
	Put Op = iota + 1
	// Delete takes the key away.
	Delete
)

// opNames holds the operations' names by their values.
var opNames = []string{Put: "put", Delete: "delete"}

// ParseOp returns the operation of that name, or an error that is
// [ErrUnknownOp].
func ParseOp(name string) (Op, error) {
	if i := slices.Index(opNames, name); i > 0 {
		return Op(i), nil
	}
	return 0, fmt.Errorf("%w %.64q: it is one of %s", ErrUnknownOp, name, strings.Join(opNames[1:], ", "))
}

// String returns the operation's name, as traces write it.
func (o Op) String() string {
	if o == 0 || int(o) >= len(opNames) {
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
	return opNames[o]
}

// Change is one line of a trace.
type Change struct {
	// Time is when it happened, in UTC.
	Time time.Time
	Op   Op
	// Key names the object; it is valid by store.ValidateKey.
	Key string
	// Version is what the object is after a Put.
	Version string
}
