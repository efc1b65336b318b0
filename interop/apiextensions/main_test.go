package apiextensions

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// sideBySide is how many tests run at once. Each has a server of Kubernetes, for which it waits nine
// tenths of the time.
const sideBySide = "6"

// The test binary starts itself as Kubernetes' server, which cannot be ended without leaving
// goroutines behind.
func TestMain(m *testing.M) {
	if dir := os.Getenv(originalVariable); dir != "" {
		if err := serveOriginal(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err := flag.Set("test.parallel", sideBySide); err != nil { // unless -parallel is given
		panic(err) // there is such a flag
	}
	goleak.VerifyTestMain(m)
}
