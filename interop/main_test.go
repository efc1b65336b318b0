package interop_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// detectors are client-go's environment variables.
var detectors = []string{"KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true", "KUBE_LIST_FROM_CACHE_INCONSISTENCY_DETECTOR=true", "KUBE_CACHE_MUTATION_DETECTOR=true"}

// withDetectors runs the tests in a process whose environment has the detectors.
func withDetectors(m *testing.M) int {
	if os.Getenv("KUBE_CACHE_MUTATION_DETECTOR") == "true" {
		return m.Run()
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
