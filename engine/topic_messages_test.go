package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
)

func TestTopic_MessagesBeginAtTheCallAndStopWithTheLoop(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{})
	messages := topic.Messages(t.Context(), engine.SubscribeOptions{})
	publish(t, topic, 0, 3)
	var got []int
	for n, err := range messages {
		require.NoError(t, err)
		if got = append(got, n); len(got) == 2 {
			break
		}
	}
	require.Equal(t, []int{0, 1}, got)
	require.Empty(t, topic.Watches())
	for n, err := range messages {
		require.NoError(t, err)
		require.Equal(t, 2, n, "it goes on where it was left")
		break
	}
}

func TestTopic_MessagesEndWithTheContext(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("enough")
	messages := topic.Messages(ctx, engine.SubscribeOptions{})
	cancel(because)
	ends := 0
	for n, err := range messages {
		require.Zero(t, n)
		require.ErrorIs(t, err, engine.ErrStopped)
		require.ErrorIs(t, err, because)
		ends++
	}
	require.Equal(t, 1, ends)
}

// The inner loop would take the subscription from the outer one.
func TestTopic_MessagesAreForOneLoopAtATime(t *testing.T) {
	host := hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch), Seed: 1})
	topic := topicOn(t, engine.TopicOptions{Host: host})
	messages := topic.Messages(t.Context(), engine.SubscribeOptions{})
	publish(t, topic, 0, 3)
	var got []int
	for n, err := range messages {
		require.NoError(t, err)
		refused := 0
		for n, err := range messages {
			require.Zero(t, n)
			require.ErrorIs(t, err, engine.ErrConsumerConflict)
			refused++
		}
		require.Equal(t, 1, refused)
		if got = append(got, n); len(got) == 2 {
			break
		}
	}
	require.Equal(t, []int{0, 1}, got)
	for n, err := range messages {
		require.NoError(t, err)
		require.Equal(t, 2, n, "it goes on where it was left")
		break
	}
}

// A loop that cannot subscribe now does not keep later ones from it.
func TestTopic_MessagesGoOnAfterALoopThatCouldNotSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{Workers: 1})
		require.NoError(t, err)
		blocked := make(chan struct{})
		topic := engine.NewTopicWith[int](engine.TopicOptions{Host: host, OnEnd: func(engine.WatchEnd) { <-blocked }})
		messages := topic.Messages(t.Context(), engine.SubscribeOptions{})
		publish(t, topic, 0, 1)
		for n, err := range messages {
			require.NoError(t, err)
			require.Zero(t, n)
			break
		}
		publish(t, topic, 1, 2)
		synctest.Wait()
		for _, err := range messages {
			require.ErrorIs(t, err, engine.ErrNotReady, "the dispatcher waits for OnEnd of the first loop's watch")
		}
		close(blocked)
		for n, err := range messages {
			require.NoError(t, err)
			require.Equal(t, 1, n, "it goes on where it was left")
			break
		}
		require.NoError(t, topic.Close())
		require.NoError(t, host.Close())
	})
}

// The newest messages of the past are for the first loop; the next goes on where it was left.
func TestTopic_MessagesGoOnBehindTheReplayedOnes(t *testing.T) {
	host := hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch), Seed: 1})
	topic := topicOn(t, engine.TopicOptions{Host: host, Replay: 2})
	publish(t, topic, 0, 3)
	require.ErrorIs(t, host.Await(t.Context(), nil), engine.ErrIdle)
	messages := topic.Messages(t.Context(), engine.SubscribeOptions{Last: 2})
	for _, want := range []int{1, 2} {
		for n, err := range messages {
			require.NoError(t, err)
			require.Equal(t, want, n)
			break
		}
	}
}
