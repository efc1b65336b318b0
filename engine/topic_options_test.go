package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// A subscription has the topic's policy, unless it has one of its own.
func TestTopic_PolicyIsTheDefaultOfItsSubscriptions(t *testing.T) {
	for _, test := range []struct{ topic, own, want engine.Policy }{
		{0, 0, engine.Park},
		{0, engine.Terminate, engine.Terminate},
		{engine.Terminate, 0, engine.Terminate},
		{engine.Terminate, engine.Terminate, engine.Terminate},
	} {
		topic := topicOn(t, engine.TopicOptions{Policy: test.topic})
		_, err := topic.SubscribeWith(t.Context(), engine.SubscribeOptions{Policy: test.own}, func(int) {})
		require.NoError(t, err)
		require.Equal(t, test.want, topic.Watches()[0].Policy, "%+v", test)
	}
}

func TestTopic_OnEndIsToldOfItsSubscriptions(t *testing.T) {
	ended := make(chan string, 1)
	topic := topicOn(t, engine.TopicOptions{OnEnd: func(end engine.WatchEnd) { ended <- fmt.Sprint(end.Name, ": ", end.Err) }})
	sub, err := topic.SubscribeWith(t.Context(), engine.SubscribeOptions{Name: "billing"}, func(int) {})
	require.NoError(t, err)
	sub.Stop()
	require.NoError(t, topic.Close(), "which waits until all has been told")
	require.Len(t, ended, 1)
	require.Equal(t, fmt.Sprint("billing: ", sub.Err()), <-ended)
}

// As many messages may be kept as the window holds at most.
func TestTopic_ReplayMayFillTheWindow(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{Replay: 10, Window: engine.Window{MaxEvents: 10}})
	publish(t, topic, 0, 1)
}

// The advice of an engine, to list and watch from there, cannot be followed at a topic.
func TestTopic_SaysHowToGoOnWhereMessagesAreNotKept(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{FirstRevision: 100})
	from := engine.SubscribeOptions{From: 3}
	_, bySubscribe := topic.SubscribeWith(t.Context(), from, func(int) {})
	_, byProcess := topic.Process(t.Context(), from, engine.ErrorPolicy{}, func(context.Context, int) error { return nil })
	_, byWatch := topic.Watch(t.Context(), from)
	var byMessages error
	for _, err := range topic.Messages(t.Context(), from) {
		byMessages = err
	}
	for _, err := range []error{bySubscribe, byProcess, byWatch, byMessages} {
		require.ErrorIs(t, err, engine.ErrExpired)
		var expired *engine.ExpiredError
		require.ErrorAs(t, err, &expired)
		require.Equal(t, engine.Revision(100), expired.Oldest)
		require.EqualError(t, err, "messages after revision 3 are not all kept any more, only those after 100: subscribe with Last, or from now on")
	}
}
