//go:build buildcost

package buildcost_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rounds is how often each program is built, and tries how often that is done again
// while the least of all rounds is too much: what a neighbour on the machine adds is never
// negative, so more rounds come closer to what a build costs.
const (
	rounds = 5
	tries  = 3
)

// built is what building a program again with one line changed costs.
type built struct {
	cpu  time.Duration
	size int64
}

// rebuild builds the program with its line changed and returns the CPU time of
// the whole build, and the size of the binary without symbols.
func rebuild(t *testing.T, program string, line int) built {
	t.Helper()
	dir := t.TempDir()
	file, err := filepath.Abs(filepath.Join(program, "main.go"))
	require.NoError(t, err)
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := strings.Replace(string(source), "const line = 0", fmt.Sprintf("const line = %d", line), 1)
	require.NotEqual(t, string(source), changed)
	replacement, overlay, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "binary")
	require.NoError(t, os.WriteFile(replacement, []byte(changed), 0o600))
	mapping, err := json.Marshal(map[string]map[string]string{"Replace": {file: replacement}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, mapping, 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-ldflags", "-s -w", "-o", binary, "./"+program)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	info, err := os.Stat(binary)
	require.NoError(t, err)
	return built{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), info.Size()}
}

// measure rebuilds the programs in turn and returns the least of each, until it is
// good enough or tries are over.
func measure(t *testing.T, good func(map[string]built) bool, programs ...string) map[string]built {
	seed := int(time.Now().UnixNano() % 1e9) // lines that no build has cached
	least := make(map[string]built)
	for _, p := range programs {
		rebuild(t, p, seed) // fills the build cache
	}
	for round := 1; round <= rounds*tries && (round <= rounds || !good(least)); round++ {
		for _, p := range programs {
			b := rebuild(t, p, seed+round)
			if last, ok := least[p]; ok {
				b.cpu = min(b.cpu, last.cpu)
			}
			least[p] = b
		}
	}
	for _, p := range programs {
		t.Logf("%-6s %v of CPU, %d kB", p, least[p].cpu.Round(time.Millisecond), least[p].size/1000)
	}
	return least
}

// The most that a changed line may cost with an engine, and one more type may add: half
// a second on a machine that builds bare in one and a half.
const (
	maxOne  = 1.5
	maxMore = 0.35
)

// moreTypes are the programs with one type more than another.
var moreTypes = map[string]string{"two": "one", "three": "two"}

// share returns what program a costs beyond program b, "" for none, by what bare costs.
func share(cost map[string]built, a, b string) float64 {
	return float64(cost[a].cpu-cost[b].cpu) / float64(cost["bare"].cpu)
}

// shareOfType returns what one more type costs by what bare costs, as the mean of two:
// the difference of two builds has the noise of both, against half as much to show.
func shareOfType(cost map[string]built) float64 { return share(cost, "three", "one") / 2 }

func littleEnough(cost map[string]built) bool {
	return share(cost, "one", "") <= maxOne && shareOfType(cost) <= maxMore
}

func TestEngine_CostsTheUsersCompilerLittle(t *testing.T) {
	cost := measure(t, littleEnough, "bare", "one", "two", "three")
	require.LessOrEqual(t, share(cost, "one", ""), maxOne, "the core is compiled with the user's package")
	require.LessOrEqual(t, shareOfType(cost), maxMore, "one more type")
	for more, fewer := range moreTypes {
		require.LessOrEqual(t, cost[more].size-cost[fewer].size, int64(150_000), "one more type in %s", more)
	}
}
