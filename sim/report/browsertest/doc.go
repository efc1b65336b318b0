// Package browsertest tests the pages of reports in a real browser, including those of
// all shipped scenarios, whose assertions must hold, apart from those about pace. It is a
// module of its own, so that the program does not depend on the browser's driver, and its
// tests have a build tag, so that the other tests need no browser:
//
//	go test -tags browser ./...
//
// The browser is chromium, or what CHROME_PATH names. The race detector makes
// latency many times as long, and some assertions fail with it.
package browsertest
