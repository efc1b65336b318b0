package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrInvalid is what every error of a scenario is.
var ErrInvalid = errors.New("invalid scenario")

// Error is one thing that is wrong with a scenario.
type Error struct {
	// File, Line and Column are where, counted from 1. They are zero for a
	// scenario that was made in Go.
	File         string
	Line, Column int
	// Field is what is wrong, as in "watchers[1].fields"; "" if it is the whole.
	Field string
	// Problem is how, and Fix what to write instead.
	Problem, Fix string
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s:", e.File)
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if e.Field != "" {
		fmt.Fprintf(&b, "%s: ", shortened(e.Field, maxFieldShown))
	}
	b.WriteString(shortened(e.Problem, maxProblemShown))
	if e.Fix != "" {
		fmt.Fprintf(&b, "; %s", shortened(e.Fix, maxFixShown))
	}
	return b.String()
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// Errors is all that is wrong with a scenario, in the order of its fields.
type Errors []*Error

func (errs Errors) Error() string {
	lines := make([]string, len(errs))
	for i, e := range errs {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors one by one.
func (errs Errors) Unwrap() []error {
	all := make([]error, len(errs))
	for i, e := range errs {
		all[i] = e
	}
	return all
}

// orNil returns the errors as an error, nil if there are none.
func (errs Errors) orNil() error {
	if len(errs) == 0 {
		return nil
	}
	return errs
}

// maxErrors is how many errors of a scenario are listed.
const maxErrors = 100

// add adds an error, and in the place of those beyond the limit one that says that
// there are more.
func (errs *Errors) add(e *Error) {
	if len(*errs) == maxErrors {
		e.Problem, e.Fix = fmt.Sprintf("is wrong too, and maybe more: only %d errors are listed", maxErrors), "correct those first"
	}
	if len(*errs) <= maxErrors {
		*errs = append(*errs, e)
	}
}

// maxListed is how many names the fix of an error lists.
const maxListed = 20

// listed names what there is, for the fix of an error: of many, the first.
func listed(names []string) string {
	if len(names) == 0 {
		return "(none)"
	}
	shown := make([]string, min(len(names), maxListed))
	for i := range shown {
		shown[i] = shortened(names[i], maxQuoted)
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// listedKeys lists the keys of a map, sorted.
func listedKeys[V any](m map[string]V) string { return listed(slices.Sorted(maps.Keys(m))) }

// What an error shows at most, in characters, whatever the scenario holds.
const (
	maxQuoted       = 40  // of a name or value
	maxForeign      = 120 // of what another package says
	maxFieldShown   = 120
	maxProblemShown = 300
	maxFixShown     = 800
)

// quoted returns a text of the scenario in quotes: a long one in part.
func quoted(text string) string { return strconv.Quote(shortened(text, maxQuoted)) }

// shortened returns the text, or as many of its first characters as are allowed
// and an ellipsis.
func shortened(text string, most int) string {
	n := 0
	for at := range text {
		if n == most {
			return text[:at] + "…"
		}
		n++
	}
	return text
}
