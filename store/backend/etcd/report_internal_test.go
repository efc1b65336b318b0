package etcd

import (
	"errors"
	"runtime"
	"sync"
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

func TestReport_ContainsOnErrorThatEndsItsGoroutine(t *testing.T) {
	var told []error
	b := &Backend{config: Config{OnError: func(err error) {
		told = append(told, err)
		runtime.Goexit()
	}}}
	goesOn := false
	var reporting sync.WaitGroup
	reporting.Go(func() {
		b.report(errors.New("nearly full"))
		goesOn = true
	})
	reporting.Wait()
	require.True(t, goesOn)
	require.Len(t, told, 2)
	require.ErrorIs(t, told[1], usercode.ErrGoexit)
}
