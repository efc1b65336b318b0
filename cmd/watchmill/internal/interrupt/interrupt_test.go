package interrupt_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/interrupt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDo_ReturnsWhatWasRead(t *testing.T) {
	torn := errors.New("torn")
	got, err := interrupt.Do(t.Context(), func() (string, error) { return "part", torn })
	require.ErrorIs(t, err, torn)
	require.Equal(t, "part", got)
}

func TestDo_EndsWhenItsContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reading, ended := make(chan struct{}), make(chan struct{})
	got, err := interrupt.Do(ctx, func() (string, error) {
		defer close(ended)
		cancel()
		<-reading
		return "late", nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, got)
	close(reading)
	<-ended
}

// What is done too late is undone, unless it has failed.
func TestDoOrUndo_UndoesWhatIsDoneTooLate(t *testing.T) {
	for _, failure := range []error{nil, errors.New("torn")} {
		ctx, cancel := context.WithCancel(t.Context())
		opening, undone := make(chan struct{}), make(chan string, 1)
		var ended sync.WaitGroup
		ended.Add(1)
		_, err := interrupt.DoOrUndo(ctx, func() (string, error) {
			defer ended.Done()
			cancel()
			<-opening
			return "late", failure
		}, func(what string) { undone <- what })
		require.ErrorIs(t, err, context.Canceled)
		close(opening)
		ended.Wait()
		if failure == nil {
			require.Equal(t, "late", <-undone)
		}
		require.Empty(t, undone)
	}
	got, err := interrupt.DoOrUndo(t.Context(), func() (string, error) { return "in time", nil }, func(string) { t.Error("it is in use") })
	require.NoError(t, err)
	require.Equal(t, "in time", got)
}

func TestAlone_IsNoInterruptThatAnotherErrorCameWith(t *testing.T) {
	require.True(t, interrupt.Alone(fmt.Errorf("reading: %w", context.Canceled)))
	require.False(t, interrupt.Alone(errors.Join(context.Canceled, errors.New("the disk is full"))))
	require.False(t, interrupt.Alone(errors.New("the disk is full")))
}
