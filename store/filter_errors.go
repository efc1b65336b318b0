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
	// Field is the name of the option: "Key", "Prefix", "Labels", "Fields",
	// "LabelSelector" or "FieldSelector".
	Field string
	// Input is what it was set to.
	Input string
	// Err is what is wrong with it; for a bad Key or Prefix a [*KeyError].
	Err error
}

// errKeyToo: Key and Prefix exclude each other.
var errKeyToo = errors.New("Key names one object already; leave one of them empty")

func (e *SelectorError) Error() string {
	text := fmt.Sprintf("invalid %s %q: %v", e.Field, e.Input, e.Err)
	example, ok := selectorExamples[e.Field]
	if !ok || e.Err == errKeyToo || errors.Is(e.Err, ErrUnknownField) || errors.Is(e.Err, ErrNoLabels) {
		return text // the error says what to write
	}
	return text + fmt.Sprintf(": write it like %q", example)
}

// Is makes errors.Is(err, ErrInvalidSelector) true.
func (e *SelectorError) Is(target error) bool { return target == ErrInvalidSelector }

// Unwrap returns what is wrong with the input.
func (e *SelectorError) Unwrap() error { return e.Err }

// selectorExamples shows right syntax for each option that is text.
var selectorExamples = map[string]string{
	"Key":    "default/web-1",
	"Prefix": "default/",
	"Labels": "app=web,tier in (a,b),!legacy",
	"Fields": "spec.nodeName=n7,status.phase!=Failed",
}

// ErrNoLabels: the type has no labels, so that a selector of labels would silently match
// nothing, or everything.
var ErrNoLabels = errors.New("the type has no labels: give Config.Labels or Config.LabelValues")

// ErrUnknownField: the field was not declared. The error is an
// [*UnknownFieldError].
var ErrUnknownField = errors.New("unknown field")

// UnknownFieldError says that a selector or an index names a field that the type
// does not have, which would otherwise silently match nothing, or everything.
type UnknownFieldError struct {
	Name     string
	Declared Columns
}

func (e *UnknownFieldError) Error() string {
	if len(e.Declared) == 0 {
		return fmt.Sprintf("unknown field %q: no fields are declared", e.Name)
	}
	text := fmt.Sprintf("unknown field %q: ", e.Name)
	if meant := e.nearest(); meant != "" {
		text += fmt.Sprintf("did you mean %q? ", meant)
	}
	return text + "declared are " + strings.Join(e.Declared, ", ")
}

// Is makes errors.Is(err, ErrUnknownField) true.
func (e *UnknownFieldError) Is(target error) bool { return target == ErrUnknownField }

// nearest returns the declared name that was probably meant: one that differs by
// letter case alone, or else by the fewest edits, of at most a third of the name.
func (e *UnknownFieldError) nearest() string {
	best, least := "", len(e.Name)/3+1
	for _, name := range e.Declared {
		if strings.EqualFold(name, e.Name) {
			return name
		}
		if longer := len(name) - len(e.Name); longer >= least || -longer >= least {
			continue // it takes at least that many edits
		}
		if d := editDistance(name, e.Name); d < least {
			best, least = name, d
		}
	}
	return best
}

// editDistance is the number of bytes to insert, delete or replace that lead
// from a to b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
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

// validateFieldNames rejects names with spaces, which the parser accepts: it
// parses "a=1, b=2" as having a field " b".
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
