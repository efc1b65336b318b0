package backendtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
)

var _ backend.Clock = (*backendtest.Clock)(nil)

func TestClockRingsInOrderAtTheTimeDue(t *testing.T) {
	clock := backendtest.NewClock()
	start := clock.Now()
	var rang []string
	ring := func(name string) func() {
		return func() { rang = append(rang, fmt.Sprint(name, clock.Now().Sub(start))) }
	}
	clock.AfterFunc(2*time.Second, ring("second"))
	clock.AfterFunc(2*time.Second, ring("third"))
	clock.AfterFunc(time.Second, func() {
		ring("first")()
		clock.AfterFunc(2*time.Second, ring("fourth"))
		clock.AfterFunc(-time.Second, ring("at once"))
	})
	stopped := clock.AfterFunc(time.Second, ring("never"))
	require.True(t, stopped.Stop())
	require.False(t, stopped.Stop())
	clock.AfterFunc(time.Hour, ring("not yet"))
	clock.Advance(time.Minute)
	require.Equal(t, []string{"first1s", "at once1s", "second2s", "third2s", "fourth3s"}, rang)
	require.Equal(t, time.Minute, clock.Now().Sub(start))
	require.Equal(t, 1, clock.Pending())
}

func TestClockSetBackRingsNothing(t *testing.T) {
	clock := backendtest.NewClock()
	rang := false
	clock.AfterFunc(0, func() { rang = true })
	clock.Advance(-time.Second)
	require.False(t, rang)
	clock.Advance(time.Second)
	require.True(t, rang)
}

func ExampleClock() {
	clock := backendtest.NewClock()
	clock.AfterFunc(time.Minute, func() { fmt.Println("a minute has passed") })
	clock.Advance(59 * time.Second)
	fmt.Println("not yet")
	clock.Advance(time.Second)
	// Output:
	// not yet
	// a minute has passed
}

// The checks can also be run one by one, on any T.
func ExampleChecks() {
	for _, check := range backendtest.Checks()[:3] {
		fmt.Println(check.Name)
	}
	// Output:
	// Row001_CreateStoresWhatItReturns
	// Row002_CreateWithTTLIsDeletedInTime
	// Row003_CreateOfAnExistingKeyFails
}
