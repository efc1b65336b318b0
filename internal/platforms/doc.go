// Package platforms has a test that type-checks every package of the module, with all
// that it imports, for systems that the tests do not run on:
//
//	go test -tags platforms ./internal/platforms
//
// Another system may leave out a file, lack a call, or have an int that does not hold
// a constant. The type checker finds all of these, in a tenth of the time that
// compiling takes.
package platforms
