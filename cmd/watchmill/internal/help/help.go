// Package help prints the help and the version of the programs' command lines, so that
// output which cannot be written differs from wrong usage. [Given] is the value of a flag that
// is not empty, and [GivenEach] are several.
package help

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// ErrUnwritten is the error of a help or a version that cannot be written. Parsing fails with
// it, wrapped in an error of usage.
var ErrUnwritten = errors.New("cannot write")

// Print prints the help of a command, as a [kong.HelpPrinter]. Its error is an [ErrUnwritten]
// with that of the writer.
func Print(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return fmt.Errorf("%w the help: %w", ErrUnwritten, err)
	}
	return nil
}

// Hint says which help to read after an error of usage: that of the command, if one was given.
func Hint(err error) string {
	of := ""
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		of = wrong.Context.Model.Name
		if command := wrong.Context.Selected(); command != nil {
			of = command.FullPath()
		}
	}
	return "Run " + of + " --help to see what there is."
}

// Version is the flag that prints the version of the program, and the Go that it was built
// with, and exits.
type Version bool

// BeforeReset is called by kong where the flag is given. Its error is that of Print.
func (Version) BeforeReset(app *kong.Kong) error {
	if _, err := fmt.Fprintln(app.Stdout, app.Model.Name, build()); err != nil {
		return fmt.Errorf("%w the version: %w", ErrUnwritten, err)
	}
	app.Exit(0)
	return nil
}

// build describes the program that runs. The version is "(devel)" if the go command did not
// record one.
func build() string {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return fmt.Sprintf("%s, %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
