// Package browsertest tests the page of package inspect in a real browser, against
// engines under load of which one watch is stuck. It is a module of its own, so
// that the program does not depend on the browser's driver, and its tests have a
// build tag, so that the other tests need no browser:
//
//	go test -tags browser ./...
//
// The browser is chromium, or what CHROME_PATH names. With SHOTS set to a folder
// the tests leave pictures of the page there.
package browsertest
