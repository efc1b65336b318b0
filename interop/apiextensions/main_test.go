package apiextensions

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

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
	goleak.VerifyTestMain(m)
}
