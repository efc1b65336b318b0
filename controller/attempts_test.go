package controller

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// An outage makes every key fail. A map keeps the memory of all of them when it is empty.
func TestAttempts_KeepNoMemoryOfAnOutage(t *testing.T) {
	c := &core{}
	for n := range 1000 {
		require.Equal(t, 1, c.count(fmt.Sprint(n)))
	}
	require.Equal(t, 2, c.count("0"))
	for n := range 1000 {
		c.forgetAttempts(fmt.Sprint(n))
	}
	require.Nil(t, c.attempts)
	require.Equal(t, 1, c.count("0"))
}
