package help

import "errors"

// Given is the value of a flag that may be left out, but not be empty: an empty value comes from a variable of the
// shell that is not set, and would leave out users, a backup or a report.
type Given string

// UnmarshalText refuses an empty text. The parser of flags calls it.
func (g *Given) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("is empty; give a value, or leave the flag out")
	}
	*g = Given(text)
	return nil
}
