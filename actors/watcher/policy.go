package watcher

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Policy says what happens to a watch that lags more than its buffer.
type Policy uint8

// The policies. The zero value is Park.
const (
	// Park keeps the watch at its position, at the cost of its cursor, until its
	// consumer reads again. When the position leaves the window, the watch delivers
	// its backlog and ends with store.ErrExpired.
	Park Policy = iota
	// Terminate ends the watch once the time budget that all slow watches share is
	// used up, as Kubernetes does.
	Terminate
	// Conflate does not end the watch: when the position leaves the window, it
	// delivers the newest state of each changed key, and deletions, marked as
	// conflated. Missed emitted values are not state and are lost. If there is no
	// difference, the next event is marked store.AfterGap.
	Conflate
)

// policyNames holds the policies' names by their values.
var policyNames = []string{Park: "park", Terminate: "terminate", Conflate: "conflate"}

// ErrInvalidPolicy: there is no such policy. The error is a [*PolicyError].
var ErrInvalidPolicy = errors.New("invalid policy")

// PolicyError says that a policy is unknown.
type PolicyError struct {
	// Input is the unknown policy.
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
