package aliases_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/registry/internal/aliases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCheck_BoundsWhatAliasesMakeOfADocument(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for text, refused := range map[string]bool{
		"a: &a " + long + "\nb: [" + strings.Repeat("*a, ", 20) + "]": false, "a: &a " + long + "\nb: [" + strings.Repeat("*a, ", 40) + "]": true,
		"a: " + strings.Repeat(long, 50) + "*": false, "a: *b": true, "a: [": false, "a: [*": true, "": false,
	} {
		require.Equal(t, refused, aliases.Check([]byte(text)) != nil, "%.60s", text)
	}
}
