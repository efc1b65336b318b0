package informer_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestClientRow175: nothing that an informer starts outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
