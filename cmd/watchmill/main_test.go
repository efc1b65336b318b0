package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asCommand is set in the environment of a process that is to be the command instead
// of its tests.
const asCommand = "WATCHMILL_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// A SIGTERM ends a run with its report: otherwise a timeout would end the process without one.
func TestSIGTERM_StopsARunAsAnInterruptDoes(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		ctx := stoppable(t.Context())
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.NoError(t, self.Signal(sig))
		<-ctx.Done()
	}
}
