package etcd_test

import (
	"os"
	"testing"

	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	etcdtest.RunMember()
	resumeMain()
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
