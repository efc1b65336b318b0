package journal_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// A process whose address space is limited cannot reserve as much of it as others, and maps
// the file again when that has grown.
func TestOpen_LivesWithLittleAddressSpace(t *testing.T) {
	inChild(t, func() {
		var pages uint64
		_, err := fmt.Sscan(string(read(t, "/proc/self/statm")), &pages)
		require.NoError(t, err)
		var limit syscall.Rlimit
		require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_AS, &limit))
		assign(&limit.Cur, pages*uint64(os.Getpagesize())+1<<30)
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_AS, &limit))
		f := newFixture(t, journal.Options{})
		for range 200 {
			f.put("a", strings.Repeat("x", 10_000))
		}
		f.requireWhole()
		f.requireChecked()
		f.requireWhole()
	})
}
