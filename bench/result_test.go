package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/bench"
)

func TestQuantity_HasThreeFiguresAndAUnit(t *testing.T) {
	for v, text := range map[float64]string{
		0: "0", 0.1234: "0.123", 7: "7", 999.4: "999", 999.6: "1k", 1234: "1.23k", -1234: "-1.23k", 999_600: "1M",
		1e6: "1M", 12_345_678: "12.3M", 1e9: "1G", 1e11: "100G", 999.9e9: "1T", 1e12: "1T", 1e14: "100T",
	} {
		require.Equal(t, text, bench.Quantity(v), "%v", v)
	}
}
