package store

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// ErrInvalidSelector: a filter's options cannot be understood. The error is a
// [*SelectorError].
var ErrInvalidSelector = errors.New("invalid selector")

// SelectorError says which of the [FilterOptions] is wrong.
type SelectorError struct {
	// Field is the name of the option: "Key", "Prefix", "Labels" or "Fields".
	Field string
	// Input is what it was set to.
	Input string
	// Err is what is wrong with it; for a bad Key or Prefix a [*KeyError].
	Err error
}

// errKeyToo: a Prefix has nothing left to select.
var errKeyToo = errors.New("nothing is left to select beside Key, which names one object; leave one of them empty")

func (e *SelectorError) Error() string {
	if e.Err == errKeyToo {
		return fmt.Sprintf("invalid %s %q: %v", e.Field, e.Input, e.Err)
	}
	return fmt.Sprintf("invalid %s %q: %v: write it like %q", e.Field, e.Input, e.Err, selectorExamples[e.Field])
}

// Is makes errors.Is(err, ErrInvalidSelector) true.
func (e *SelectorError) Is(target error) bool { return target == ErrInvalidSelector }

// Unwrap returns what is wrong with the input.
func (e *SelectorError) Unwrap() error { return e.Err }

// selectorExamples shows right syntax for each option.
var selectorExamples = map[string]string{
	"Key":    "default/web-1",
	"Prefix": "default/",
	"Labels": "app=web,tier in (a,b),!legacy",
	"Fields": "spec.nodeName=n7,status.phase!=Failed",
}

func (o *FilterOptions) validateKeys() error {
	if o.Key != "" && o.Prefix != "" {
		return &SelectorError{Field: "Prefix", Input: o.Prefix, Err: errKeyToo}
	}
	if err := ValidatePrefix(o.Prefix); err != nil {
		return &SelectorError{Field: "Prefix", Input: o.Prefix, Err: err}
	}
	if o.Key == "" {
		return nil
	}
	if err := ValidateKey(o.Key); err != nil {
		return &SelectorError{Field: "Key", Input: o.Key, Err: err}
	}
	return nil
}

// validateFieldNames rejects names that the parser lets through but that are
// never meant: it keeps the spaces of "a=1, b=2" as part of the name " b".
func validateFieldNames(s fields.Selector) error {
	for _, r := range s.Requirements() {
		switch {
		case r.Field == "":
			return errors.New("a term has no field name")
		case strings.TrimSpace(r.Field) != r.Field:
			return fmt.Errorf("field name %q has spaces around it", r.Field)
		}
	}
	return nil
}
