package watcher

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Policy says what becomes of a watcher that has fallen too far behind.
type Policy uint8

// The policies. The zero value is Park.
const (
	// Park leaves the watcher at its position, at no cost but its cursor, until
	// its consumer reads again. When its position leaves the window it gets what
	// it still holds and then store.ErrExpired.
	Park Policy = iota
	// Terminate ends the watcher once the time budget that all slow watchers
	// share is spent, as Kubernetes does.
	Terminate
	// Conflate never ends the watcher: past the window it gets the newest state
	// of each key that changed, and deletions, marked as conflated. Emitted
	// values that it missed are not state, and gone.
	Conflate
)

// policyNames holds the policies' names by their values.
var policyNames = []string{Park: "park", Terminate: "terminate", Conflate: "conflate"}

// ErrInvalidPolicy: there is no such policy. The error is a [*PolicyError].
var ErrInvalidPolicy = errors.New("invalid policy")

// PolicyError says which policy there is not.
type PolicyError struct {
	// Input is what was asked for.
	Input string
}

func (e *PolicyError) Error() string {
	return fmt.Sprintf("invalid policy %q: it is one of %s", e.Input, strings.Join(policyNames, ", "))
}

// Is makes errors.Is(err, ErrInvalidPolicy) true.
func (e *PolicyError) Is(target error) bool { return target == ErrInvalidPolicy }

// ParsePolicy returns the policy of that name ("park", "terminate" or
// "conflate"), or a [*PolicyError].
func ParsePolicy(name string) (Policy, error) {
	i := slices.Index(policyNames, name)
	if i < 0 {
		return 0, &PolicyError{Input: name}
	}
	return Policy(i), nil
}

// Valid reports whether p is one of the policies above.
func (p Policy) Valid() bool { return int(p) < len(policyNames) }

// String returns the policy's name, as [ParsePolicy] takes it.
func (p Policy) String() string {
	if !p.Valid() {
		return fmt.Sprintf("Policy(%d)", uint8(p))
	}
	return policyNames[p]
}

// MarshalText writes the policy's name, or returns a [*PolicyError] if it is
// not valid.
func (p Policy) MarshalText() ([]byte, error) {
	if !p.Valid() {
		return nil, &PolicyError{Input: p.String()}
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (p *Policy) UnmarshalText(text []byte) error {
	parsed, err := ParsePolicy(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}
