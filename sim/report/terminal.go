package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Terminal describes a terminal. The zero value means plain text with lines of any
// length.
type Terminal struct {
	// Width is the number of columns; 0 means no limit. Tables take 80.
	Width int
	// Color colours the results of assertions by ANSI escape sequences.
	Color bool
}

// color is the number of an ANSI colour. Terminals choose shades of these that are
// readable on their background.
type color int

const (
	bad     color = 31 // red
	good    color = 32 // green
	warning color = 33 // yellow
)

// text is the text of a report while it is written.
type text struct {
	strings.Builder
	Terminal
}

// indent is the width of the names at the beginning of lines.
const indent = 11

// line writes a line that begins with its name, wrapped if it is too long.
func (t *text) line(name, format string, args ...any) {
	t.named(fmt.Sprintf("%-*s", indent, name), format, args...)
}

// mark writes a line with a coloured name.
func (t *text) mark(as color, name, format string, args ...any) {
	padded := fmt.Sprintf("%-*s", indent, name)
	if t.Color {
		padded = fmt.Sprintf("\x1b[%dm%s\x1b[0m", as, padded)
	}
	t.named(padded, format, args...)
}

func (t *text) named(name, format string, args ...any) {
	t.WriteString(name)
	t.WriteString(strings.Join(t.wrap(printable(fmt.Sprintf(format, args...)), indent), "\n"+strings.Repeat(" ", indent)))
	t.WriteByte('\n')
}

// row writes a row of a table with remarks, which are put below if there is no room
// beside it.
func (t *text) row(columns, remarks string) {
	columns, remarks = printable(columns), printable(remarks)
	t.WriteString(columns)
	switch used := utf8.RuneCountInString(columns) + 2; {
	case remarks == "":
	case t.Width == 0 || used+utf8.RuneCountInString(remarks) <= t.Width:
		t.WriteString("  " + remarks)
	default:
		for _, line := range t.wrap(remarks, 4) {
			t.WriteString("\n    " + line)
		}
	}
	t.WriteByte('\n')
}

// wrap breaks a line at spaces, so that it fits into the width after an indent. Words
// that are too long stay whole.
func (t *text) wrap(line string, indent int) (lines []string) {
	room := t.Width - indent
	if t.Width == 0 || utf8.RuneCountInString(line) <= room {
		return []string{line}
	}
	var now string
	for word := range strings.FieldsSeq(line) {
		switch {
		case now == "":
			now = word
		case utf8.RuneCountInString(now)+1+utf8.RuneCountInString(word) <= room:
			now += " " + word
		default:
			lines, now = append(lines, now), word
		}
	}
	return append(lines, now)
}

// printable returns the text in one line that does not control a terminal: names and errors in a
// report may be of any characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case r < utf8.RuneSelf && unicode.IsSpace(r):
			return ' '
		}
		return unicode.ReplacementChar
	}, text)
}
