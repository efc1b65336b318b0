package buildcost_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// facades are the packages of which generic code may be compiled with a user's package.
var facades = []string{
	"controller", "engine", "engine/enginetest", "engine/informer", "engine/objectcache", "queue", "registry", "store", "store/cache",
}

// symbol is machine code or data of a compiled package.
type symbol struct {
	name string
	size int
	code bool
}

// generic reports whether the symbol is of a generic function or type.
func (s symbol) generic() bool { return strings.Contains(s.name, "[") }

// symbols returns what the compiler has made of a package.
func symbols(t *testing.T, of string) (all []symbol) {
	t.Helper()
	object, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-f", "{{.Export}}", of).Output()
	require.NoError(t, err)
	listed, err := exec.CommandContext(t.Context(), "go", "tool", "nm", "-size", strings.TrimSpace(string(object))).Output()
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^ *\S+ +(\d+) ([TR]) (.*)$`).FindAllStringSubmatch(string(listed), -1) {
		size, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		all = append(all, symbol{m[3], size, m[2] == "T"})
	}
	return all
}

// owner matches the package of a symbol: of a function, of a dictionary, or of a type.
var owner = regexp.MustCompile(`^(?:type:)?(?:\.eq(?:func)?\.)?\**(\w[\w.-]*/(?:[\w.-]+/)*[\w-]+)\.`)

// foreign reports whether the symbol is generic code of a module, and not of a façade.
func foreign(s symbol) bool {
	m := owner.FindStringSubmatch(s.name)
	if m == nil || !s.generic() || !strings.Contains(strings.Split(m[1], "/")[0], ".") {
		return false
	}
	local, ours := strings.CutPrefix(m[1], "github.com/watchmill/watchmill/")
	return !ours || !slices.Contains(facades, local) && local != "internal/buildcost/facades"
}

func TestFacades_AreAllThatIsGeneric(t *testing.T) {
	var own int
	var found []string
	for _, s := range symbols(t, "./facades") {
		switch {
		case foreign(s):
			found = append(found, s.name)
		case s.generic():
			own += s.size
		}
	}
	require.NotZero(t, own, "no generic code is found at all")
	require.Empty(t, found, "generic code is compiled with the user's package")
}

// The test above can fail: storage in memory compiles B-trees, once for all.
func TestFacades_AreToldFromOtherGenericCode(t *testing.T) {
	require.True(t, slices.ContainsFunc(symbols(t, "../../store/tree"), foreign))
}
