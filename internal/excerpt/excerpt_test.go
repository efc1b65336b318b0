package excerpt_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/internal/excerpt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOf_ReturnsTheBeginningOfWhatIsLonger(t *testing.T) {
	require.Equal(t, "abcd", excerpt.Of("abcd", 4))
	require.Equal(t, "abc…", excerpt.Of("abcd", 3))
	require.Equal(t, "ab…", excerpt.Of("abäd", 3), "half an ä is left out")
	require.Empty(t, excerpt.Of("", 0))
}
