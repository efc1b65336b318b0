package informer_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Nothing that an informer starts outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
