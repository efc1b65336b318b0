package killtest_test

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/killtest"
)

func TestMain(m *testing.M) {
	killtest.ChildMain()
	engineMain()
	goleak.VerifyTestMain(m)
}

// rounds is how many processes are killed: WATCHMILL_KILL_ROUNDS for the long
// form, few otherwise.
func rounds(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv("WATCHMILL_KILL_ROUNDS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// Nothing that was acknowledged, or that a watch has seen, is ever lost to SIGKILL.
func TestKill_LosesNothing(t *testing.T) {
	n := rounds(t, 20)
	j, err := killtest.Run(killtest.Options{
		Rounds: n, Writers: 64, Dir: t.TempDir(),
		Command: func() *exec.Cmd { return exec.Command(os.Args[0]) },
		Report: func(round int, j *killtest.Judge) {
			if (round+1)%100 == 0 {
				t.Logf("%d rounds: %d acknowledged, %d found that were not", round+1, j.Acknowledged, j.Unacknowledged)
			}
		},
	})
	require.NoError(t, err)
	require.Greater(t, j.Acknowledged, n/4, "the children have written")
	t.Logf("%d rounds: %d acknowledged, %d found that were not", n, j.Acknowledged, j.Unacknowledged)
}
