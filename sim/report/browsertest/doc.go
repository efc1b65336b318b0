// Package browsertest looks at the pages of reports with a real browser. It is a
// module of its own, so that the program does not depend on what drives one, and
// its test has a build tag, so that nobody needs a browser to run the others:
//
//	go test -tags browser ./...
//
// The browser is chromium, or what CHROME_PATH names.
package browsertest
