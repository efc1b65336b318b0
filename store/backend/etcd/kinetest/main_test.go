package kinetest_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/store/backend/etcd/kinetest"
)

func TestMain(m *testing.M) {
	kinetest.RunKine()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return code
}
