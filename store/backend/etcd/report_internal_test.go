package etcd

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/usercode"
)

func TestReport_ContainsAPanicInOnError(t *testing.T) {
	var told []error
	b := &Backend{config: Config{OnError: func(err error) {
		told = append(told, err)
		panic("cannot log")
	}}}
	nearlyFull := errors.New("nearly full")
	require.NotPanics(t, func() { b.report(nearlyFull) })
	require.Len(t, told, 2)
	require.Equal(t, nearlyFull, told[0])
	require.ErrorIs(t, told[1], usercode.ErrPanic)
	require.ErrorContains(t, told[1], "Config.OnError")
}
