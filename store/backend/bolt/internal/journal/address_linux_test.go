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
		limitAddressSpace(t, 1<<30)
		f := newFixture(t, journal.Options{})
		for range 200 {
			f.put("a", strings.Repeat("x", 10_000))
		}
		f.requireWhole()
		f.requireChecked()
		f.requireWhole()
	})
}

// The system's error, cannot allocate memory, says neither which file needs it nor what for.
func TestOpen_SaysThatTheFileDoesNotFitIntoTheAddressSpace(t *testing.T) {
	inChild(t, func() {
		f := newFixture(t, journal.Options{})
		f.put("a", "x")
		require.NoError(t, f.Close())
		require.NoError(t, os.Truncate(f.path, 1<<30)) // the system writes none of that
		limitAddressSpace(t, 1<<29)
		_, err := journal.Open(f.path, journal.Options{})
		require.ErrorIs(t, err, syscall.ENOMEM)
		require.ErrorContains(t, err, "cannot open "+f.path+": there is too little address space to map it: is that limited, as by ulimit -v?")
	})
}

// limitAddressSpace leaves this process so many bytes of address space more than it has.
func limitAddressSpace(t *testing.T, bytes uint64) {
	t.Helper()
	var pages uint64
	_, err := fmt.Sscan(string(read(t, "/proc/self/statm")), &pages)
	require.NoError(t, err)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_AS, &limit))
	assign(&limit.Cur, pages*uint64(os.Getpagesize())+bytes)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_AS, &limit))
}
