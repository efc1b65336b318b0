package conformance

import (
	"testing"

	"go.uber.org/goleak"
)

// Some specs leave watches that nothing reads or stops, and ginkgo a goroutine that waits for
// signals.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive"),
		goleak.IgnoreAnyFunction("github.com/onsi/ginkgo/v2/internal/interrupt_handler.(*InterruptHandler).registerForInterrupts.func2"),
	)
}
