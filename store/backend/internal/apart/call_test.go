package apart_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/internal/apart"
	"github.com/watchmill/watchmill/usercode"
)

func TestCall_ContainsWhatEndsTheFunction(t *testing.T) {
	called := false
	require.NoError(t, apart.Call("OnError", func() { called = true }))
	require.True(t, called, "it waits")

	err := apart.Call("OnError", func() { panic("oops") })
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.ErrorContains(t, err, "OnError panicked: oops")

	err = apart.Call("OnError", runtime.Goexit)
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.ErrorIs(t, err, usercode.ErrGoexit)
	require.ErrorContains(t, err, "OnError")
}
