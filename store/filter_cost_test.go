package store_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/store"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Requests choose how long a selector is.
func TestFilter_CostsAsMuchAsItsSelectorIsLong(t *testing.T) {
	const terms, length = 4000, 100
	var forbidden []fields.Selector
	for i := range terms {
		forbidden = append(forbidden, fields.OneTermNotEqualSelector("a", fmt.Sprintf("%0*d", length, i)))
	}
	selector := fields.AndSelectors(forbidden...)
	require.Less(t, allocated(func() { require.False(t, selecting(t, nil, selector).Nothing()) }), uint64(100*terms*length))
}

func TestUnknownField_CostsAsMuchAsItsNameIsLong(t *testing.T) {
	const length, declared = 100_000, 200
	var names []string
	for i := range declared {
		names = append(names, fmt.Sprint("spec.field", i))
	}
	err := &store.UnknownFieldError{Name: strings.Repeat("x", length), Declared: store.NewColumns(names...)}
	require.Less(t, allocated(func() { require.ErrorContains(t, err, "declared are spec.field0, ") }), uint64(100*length))
}
