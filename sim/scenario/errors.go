package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrInvalid matches every error about a scenario, by errors.Is.
var ErrInvalid = errors.New("invalid scenario")

// Error is one error in a scenario.
type Error struct {
	// File, Line and Column are its position, counted from 1. They are zero for a
	// scenario that was made in Go.
	File         string
	Line, Column int
	// Field is the path of the field, such as "watchers[1].fields"; "" if the error
	// is about the whole scenario.
	Field string
	// Problem says what is wrong, and Fix what to write instead.
	Problem, Fix string
}

// Error returns one line. Long names and values are shown in part.
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

// Errors are the errors in a scenario, in the order of the file or of the fields: the
// first 100, and one that says that there are more.
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

// maxErrors is the highest number of errors that are listed.
const maxErrors = 100

// add adds an error. The first beyond the limit says that there are more, and
// others are dropped.
func (errs *Errors) add(e *Error) {
	if len(*errs) == maxErrors {
		e.Problem, e.Fix = fmt.Sprintf("is wrong too, and maybe more: only %d errors are listed", maxErrors), "correct those first"
	}
	if len(*errs) <= maxErrors {
		*errs = append(*errs, e)
	}
}

// maxListed is the highest number of names that an error lists.
const maxListed = 20

// listed joins names for an error: the first maxListed, and how many more.
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

// How many characters of each part an error shows.
const (
	maxQuoted       = 40  // of a name or value of the scenario
	maxForeign      = 120 // of another package's error
	maxFieldShown   = 120
	maxProblemShown = 300
	maxFixShown     = 800
)

// quoted returns the beginning of a text in quotes.
func quoted(text string) string { return strconv.Quote(shortened(text, maxQuoted)) }

// shortened returns the text, or its first characters and an ellipsis if it has more
// than most.
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
