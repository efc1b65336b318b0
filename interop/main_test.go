package interop_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// detectors are client-go's environment variables.
var detectors = []string{"KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true", "KUBE_CACHE_MUTATION_DETECTOR=true"}

// withDetectors runs the tests in a process whose environment has the detectors. The cost
// of the detectors grows with every event of every informer, so the long form of
// TestResume runs without them.
func withDetectors(m *testing.M) int {
	if os.Getenv("KUBE_CACHE_MUTATION_DETECTOR") == "true" || os.Getenv(resumeMinutes) != "" {
		return runLeakChecked(m)
	}
	self := exec.Command(os.Args[0], os.Args[1:]...)
	self.Env = append(os.Environ(), detectors...)
	self.Stdin, self.Stdout, self.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := self.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runLeakChecked runs the tests, looks for goroutines that they have left, and removes the
// programs that they have built.
func runLeakChecked(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "programs"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(programs) }()
	status := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}
