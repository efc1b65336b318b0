// Package help prints the help of the programs' command lines, so that a help that cannot be
// written is told from wrong usage.
package help

import (
	"errors"
	"fmt"

	"github.com/alecthomas/kong"
)

// ErrUnwritten is the error of a help that cannot be written. Parsing fails with it, wrapped in
// an error of usage.
var ErrUnwritten = errors.New("cannot write the help")

// Print prints the help of a command, as a [kong.HelpPrinter]. Its error is an [ErrUnwritten]
// with that of the writer.
func Print(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritten, err)
	}
	return nil
}
