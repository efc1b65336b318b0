package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
)

func TestExpiredError_SaysWhatIsStillKept(t *testing.T) {
	require.ErrorContains(t, &store.ExpiredError{Requested: 3, Oldest: 5}, "too old revision: 3 (oldest served is 5)")
	require.ErrorContains(t, &store.ExpiredError{Requested: 3}, "too old revision: 3 (oldest served is unknown)")
}
