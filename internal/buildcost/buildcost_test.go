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

// built is what building a program again with one line changed costs.
type built struct {
	cpu  time.Duration
	size int64
}

// rebuild builds the program with its line changed and returns the CPU time of
// the whole build, and the size of the binary without symbols.
func rebuild(t testing.TB, program string, line int) built {
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

// compiled returns the bytes of machine code that are compiled with the program's package.
func compiled(t *testing.T, program string) (code int) {
	for _, s := range symbols(t, "./"+program) {
		if s.code {
			code += s.size
		}
	}
	return code
}

// The most machine code that is compiled with a package that has an engine, and what one more
// type may add to it and to the binary: half as much again as was measured, since other
// processors need more. A core that has a type parameter would be ten times as much.
const (
	maxOne       = 75_000
	maxMore      = 60_000
	maxMoreLarge = 150_000
)

func TestEngine_CostsTheUsersCompilerLittle(t *testing.T) {
	require.LessOrEqual(t, compiled(t, "one"), maxOne, "the core is compiled with the user's package")
	for more, fewer := range map[string]string{"two": "one", "three": "two"} {
		require.LessOrEqual(t, compiled(t, more)-compiled(t, fewer), maxMore, "one more type in %s", more)
		require.LessOrEqual(t, rebuild(t, more, 1).size-rebuild(t, fewer, 1).size, int64(maxMoreLarge), "one more type in %s", more)
	}
}

func BenchmarkRebuild(b *testing.B) {
	for _, program := range []string{"bare", "one", "two", "three"} {
		b.Run(program, func(b *testing.B) {
			line := int(time.Now().UnixNano() % 1e9) // lines that no build has cached
			last := rebuild(b, program, line)        // fills the build cache
			var cpu time.Duration
			for b.Loop() {
				line++
				last = rebuild(b, program, line)
				cpu += last.cpu
			}
			b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(last.size), "binary-bytes")
		})
	}
}
