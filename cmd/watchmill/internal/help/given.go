package help

import (
	"errors"
	"slices"

	"github.com/alecthomas/kong"
)

var errEmpty = errors.New("is empty; give a value, or leave the flag out")

// Given is the value of a flag that may be left out, but not be empty: an empty value comes from a variable of the
// shell that is not set, and would leave out users, a backup or a report.
type Given string

// UnmarshalText refuses an empty text. The parser of flags calls it.
func (g *Given) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errEmpty
	}
	*g = Given(text)
	return nil
}

// GivenEach are the values of a flag that may be given several times, or with commas between its values. As
// for [Given], none is empty.
type GivenEach []string

// UnmarshalText appends the values in a text. The parser of flags calls it each time that the flag is given.
func (g *GivenEach) UnmarshalText(text []byte) error {
	values := kong.SplitEscaped(string(text), ',')
	if len(values) == 0 || slices.Contains(values, "") {
		return errEmpty
	}
	*g = append(*g, values...)
	return nil
}
