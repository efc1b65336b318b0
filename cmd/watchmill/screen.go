package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/watchmill/watchmill/sim/report"
)

// screen is what w can show: nothing but plain text, unless it is a terminal.
func screen(w io.Writer) report.Terminal {
	if !isTerminal(w) {
		return report.Terminal{}
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd())) // terminals are files
	if err != nil {
		width = 80
	}
	return report.Terminal{Width: width, Color: colors(os.Getenv)}
}

// colors reports whether a terminal is to have colours: NO_COLOR, if it is not
// empty, forbids them (no-color.org), and a dumb terminal has none.
func colors(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
