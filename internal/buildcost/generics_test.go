package buildcost_test

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maxForeign is how many bytes of generic code of other packages than the façade's
// may be compiled with a user's: wrappers of a few interfaces. One tree that can be
// reached is ten times that.
const maxForeign = 8000

// A generic type that can be reached from the façade, by the fields of its types
// and the parameters of their methods, is compiled with each user's package, with
// all its methods. This finds it by name, where the CPU time only says that there
// is one.
func TestEngine_IsAllThatIsGeneric(t *testing.T) {
	object, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-f", "{{.Export}}", "./one").Output()
	require.NoError(t, err)
	symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", "-size", strings.TrimSpace(string(object))).Output()
	require.NoError(t, err)
	generic := regexp.MustCompile(`(?m)^ *\S+ +(\d+) T (.*\[go\.shape\..*)$`)
	var own, foreign int
	var largest []string
	for _, m := range generic.FindAllStringSubmatch(string(symbols), -1) {
		size, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		if strings.HasPrefix(m[2], "github.com/watchmill/watchmill/engine.") {
			own += size
		} else if foreign += size; size > 500 {
			largest = append(largest, m[2])
		}
	}
	require.NotZero(t, own, "no generic code is found at all")
	require.LessOrEqual(t, foreign, maxForeign, "generic code is compiled with the user's package: %v", largest)
}
