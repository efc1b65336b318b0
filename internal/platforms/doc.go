// Package platforms has a test that type-checks every package of the module, with all
// that it imports, for systems that the tests do not run on:
//
//	go test -tags platforms ./internal/platforms
//
// What goes wrong on another system is a file that it leaves out, a call that it does
// not have, or a constant that its int does not hold. The type checker finds all of
// these, in a tenth of the time that compiling takes.
package platforms
