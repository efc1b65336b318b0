package interrupt_test

import (
	"context"
	"errors"
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
