package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Terminal is what a terminal can show. The zero value is none: plain text, in
// lines as long as it takes.
type Terminal struct {
	// Width is how many columns there are; 0 is no limit. Tables take 80.
	Width int
	// Color: verdicts have colours, by the escape sequences of ANSI.
	Color bool
}

// color is the number of one of ANSI's colours, of which terminals know to make
// something that can be read in dark and light.
type color int

const (
	bad     color = 31 // red
	good    color = 32 // green
	warning color = 33 // yellow
)

// text is a report in the making.
type text struct {
	strings.Builder
	Terminal
}

// indent is the room of what stands before each line.
const indent = 11

// line writes a line with its name, and goes on below where it is too long.
func (t *text) line(name, format string, args ...any) {
	t.named(fmt.Sprintf("%-*s", indent, name), format, args...)
}

// mark writes a line whose name has a colour.
func (t *text) mark(as color, name, format string, args ...any) {
	padded := fmt.Sprintf("%-*s", indent, name)
	if t.Color {
		padded = fmt.Sprintf("\x1b[%dm%s\x1b[0m", as, padded)
	}
	t.named(padded, format, args...)
}

func (t *text) named(name, format string, args ...any) {
	t.WriteString(name)
	t.WriteString(strings.Join(t.wrap(fmt.Sprintf(format, args...), indent), "\n"+strings.Repeat(" ", indent)))
	t.WriteByte('\n')
}

// row writes a line of a table and remarks: beside it if there is room, otherwise
// below.
func (t *text) row(columns, remarks string) {
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

// wrap cuts a line at its spaces, so that it fits into the width after an indent.
// Words that are too long stay whole.
func (t *text) wrap(line string, indent int) (lines []string) {
	room := t.Width - indent
	if t.Width == 0 || utf8.RuneCountInString(line) <= room {
		return []string{line}
	}
	var now string
	for _, word := range strings.Fields(line) {
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
