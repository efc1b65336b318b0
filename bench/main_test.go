package bench_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/bench"
)

func TestMain(m *testing.M) {
	if bench.RunAsClients(context.Background()) {
		return
	}
	goleak.VerifyTestMain(m)
}
