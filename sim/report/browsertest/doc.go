// Package browsertest looks at the pages of reports with a real browser, those of
// all shipped scenarios among them, and holds these to what they assert. It is a
// module of its own, so that the program does not depend on what drives one, and
// its test has a build tag, so that nobody needs a browser to run the others:
//
//	go test -tags browser ./...
//
// The browser is chromium, or what CHROME_PATH names. The race detector makes
// latency many times as long, and some assertions fail with it.
package browsertest
